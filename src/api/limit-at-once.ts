import type { FastifyInstance } from 'fastify';
import { ServiceError } from '#src/service-error.ts';

/** Limits how many requests to an application run at once, for routes that have no account to limit. */
export function limitAtOnce(app: FastifyInstance, most: number): void {
  let atOnce = 0;
  app.addHook('onRequest', async (_request, reply) => {
    if (atOnce >= most) {
      throw new ServiceError('SERVICE_UNAVAILABLE', 'the service is overloaded; retry later', {
        retryAfterS: 1,
      });
    }
    atOnce += 1;
    reply.raw.once('close', () => {
      atOnce -= 1;
    });
  });
}
