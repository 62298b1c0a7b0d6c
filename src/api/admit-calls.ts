import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type Admission, overloaded, type RefusedBy, type Ticket } from './admission.ts';
import type { ClientAddress } from './client-address.ts';
import type { RefuseCall } from './overload-responses.ts';

/** The address of a call, and the sending and counting of its refusal. */
type Admitting = {
  readonly refuse: RefuseCall;
  readonly clientAddress: ClientAddress;
  /** Receives the limit that refused a call, on arrival or later. */
  refused(request: FastifyRequest, limit: RefusedBy): void;
};

/**
 * Admits or refuses each call to an application after reading only its method and path, to keep refusals cheap in a
 * flood.
 *
 * @throws Error from the returned function, for a call that was not admitted.
 * @returns a function that returns an admitted call's ticket.
 */
export function admitCalls(
  app: FastifyInstance,
  admission: Admission,
  { refuse, clientAddress, refused }: Admitting,
): (request: FastifyRequest) => Ticket {
  const tickets = new WeakMap<FastifyRequest, Ticket>();
  app.addHook('onRequest', (request, reply, done) => {
    const ticket = admission.admit({
      address: () => clientAddress(request),
      refused: (limit) => refused(request, limit),
    });
    if (!ticket) {
      refuse(overloaded(), request, reply);
      return;
    }
    tickets.set(request, ticket);
    // The raw response also closes when the client disconnects early, and for the rpc protocols.
    reply.raw.once('close', () => ticket.close());
    done();
  });
  return (request) => {
    const ticket = tickets.get(request);
    if (!ticket) throw new Error('the call was not admitted');
    return ticket;
  };
}
