import type { FastifyInstance } from 'fastify';
import { ServiceError } from '#src/service-error.ts';

/**
 * Limits how many requests to an application's routes run at once. The limit is not per account: these requests carry
 * no account keys.
 */
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
