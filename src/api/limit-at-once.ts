import type { Http2ServerResponse } from 'node:http2';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { ServiceError } from '#src/service-error.ts';
import { createSlots, type Release, type Slots } from '#src/slots.ts';
import type { ClientAddress } from './client-address.ts';
import { addressGroup } from './shares.ts';

/** One client address's share of the slots. */
export type AddressShare = {
  readonly clientAddress: ClientAddress;
  /** Maximum percentage of the slots that one client address may hold. */
  readonly addressSharePercent: number;
};

/** Maximum number of bodies being received at once, so that they do not fill the memory. */
const MAX_RECEIVING = 400;
/**
 * Time for a client to take a response. A response to these requests fits into the client's HTTP/2 window, so only a
 * client that takes nothing needs longer.
 */
const TAKE_TIMEOUT_MS = 5_000;
/** Error code CANCEL (RFC 9113, section 7). */
const CANCEL = 8;

/**
 * Limits how many requests to an application run at once, for routes that have no account to limit. Each application
 * has its own slots, and one client address may hold only its share of them. A request takes its slot once its body has
 * arrived, and releases it when its response is ready: a client that sends or reads slowly holds no slot.
 */
export function limitAtOnce(
  app: FastifyInstance,
  most: number,
  { clientAddress, addressSharePercent }: AddressShare,
): void {
  const receiving = createSlots(MAX_RECEIVING);
  const running = createSlots(most);
  const fraction = addressSharePercent / 100;
  const holders = new WeakMap<FastifyRequest, { take(slots: Slots): void; release: Release }>();
  app.addHook('onRequest', async (request, reply) => {
    const shares = [{ group: addressGroup(clientAddress(request)), fraction }];
    let leave: Release = () => {};
    let isClosed = false;
    const release = () => leave();
    const take = (slots: Slots) => {
      leave();
      if (isClosed) return;
      const slot = slots.take(shares);
      if (!slot) throw overloaded();
      leave = slot;
    };
    holders.set(request, { take, release });
    reply.raw.once('close', () => {
      isClosed = true;
      release();
    });
    take(receiving);
  });
  app.addHook('preValidation', async (request) => holders.get(request)?.take(running));
  app.addHook('onSend', async (request, { raw }) => {
    holders.get(request)?.release();
    const late = setTimeout(() => {
      const { stream } = raw as unknown as Partial<Http2ServerResponse>;
      if (stream) stream.close(CANCEL);
      else raw.destroy();
    }, TAKE_TIMEOUT_MS).unref();
    raw.once('close', () => clearTimeout(late));
  });
}

function overloaded(): ServiceError {
  return new ServiceError('SERVICE_UNAVAILABLE', 'the service is overloaded; retry later', {
    retryAfterS: 1,
  });
}
