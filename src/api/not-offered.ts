import type { FastifyInstance } from 'fastify';
import { ServiceError } from '#src/service-error.ts';

/** Calls that clients of similar services make, with what to do instead. */
const NOT_OFFERED: Readonly<Record<string, string>> = {
  '/v1/customers/sessions':
    'customer sessions are not offered: enroll a method with POST /v1/customers/{customer_id}/payment-methods',
};

/** Makes an application say which calls it does not offer, and what to call instead. */
export function refuseNotOffered(app: FastifyInstance): void {
  for (const [path, message] of Object.entries(NOT_OFFERED)) {
    const refuse = async (): Promise<never> => {
      throw new ServiceError('NOT_SUPPORTED', message);
    };
    // Before the body is read.
    const route = {
      method: app.supportedMethods,
      exposeHeadRoute: false,
      onRequest: refuse,
      handler: refuse,
    };
    for (const url of [path, `${path}/*`]) app.route({ ...route, url });
  }
}
