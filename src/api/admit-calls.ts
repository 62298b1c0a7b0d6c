import { errorToJsonBytes } from '@connectrpc/connect/protocol-connect';
import { setTrailerStatus } from '@connectrpc/connect/protocol-grpc';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ServiceError } from '#src/service-error.ts';
import { type Admission, anyOf, OVERLOADED, type Ticket } from './admission.ts';
import { answerProblem } from './error-handler.ts';
import { toConnectError } from './errors.ts';

/** Responds to a call that is not admitted; `error` is one of OVERLOADED. */
export type RefuseCall = (error: ServiceError, request: FastifyRequest, reply: FastifyReply) => void;

/**
 * Admits or refuses every call of an application before looking at more than its method and path: in a flood, most of
 * the work is refusals.
 *
 * @returns a function that gives the ticket of an admitted call.
 */
export function admitCalls(
  app: FastifyInstance,
  admission: Admission,
  refuse: RefuseCall,
): (request: FastifyRequest) => Ticket {
  const tickets = new WeakMap<FastifyRequest, Ticket>();
  app.addHook('onRequest', (request, reply, done) => {
    const ticket = admission.admit(() => request.ip);
    if (!ticket) {
      refuse(anyOf(OVERLOADED), request, reply);
      return;
    }
    tickets.set(request, ticket);
    // On the raw response, which also closes if the client disconnects before the response, and for the rpc protocols.
    reply.raw.once('close', () => ticket.close());
    done();
  });
  return (request) => {
    const ticket = tickets.get(request);
    if (!ticket) throw new Error('the call was not admitted');
    return ticket;
  };
}

/** Sends the refusal as REST sends every error. */
export const refuseRest: RefuseCall = answerProblem;

/** Sends the refusal in the caller's rpc protocol, from responses that were rendered beforehand. */
export const refuseRpc: RefuseCall = (error, request, reply) => {
  const answer = RPC_ANSWERS.get(error);
  if (!answer) throw new Error('not one of OVERLOADED');
  const contentType = request.headers['content-type'] ?? '';
  if (contentType.startsWith('application/grpc')) {
    // In gRPC and gRPC-Web, a response that has headers only.
    reply.code(200).headers(answer.grpc).type(contentType).send();
  } else {
    reply.code(error.status).headers(answer.connect).send(answer.connectBody);
  }
};

const RPC_ANSWERS = new Map(OVERLOADED.map((error) => [error, rpcAnswer(error)]));

function rpcAnswer(error: ServiceError) {
  const rendered = toConnectError(error);
  return {
    grpc: Object.fromEntries(setTrailerStatus(new Headers(), rendered)),
    connect: { ...Object.fromEntries(rendered.metadata), 'content-type': 'application/json' },
    connectBody: Buffer.from(errorToJsonBytes(rendered, undefined)),
  };
}
