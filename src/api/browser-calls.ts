import { type DescService, getOption, hasOption } from '@bufbuild/protobuf';
import { cors } from '@connectrpc/connect';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { for_browsers } from '#gen/payments/v1/call_options_pb.js';
import { ServiceError } from '#src/service-error.ts';
import type { Credentials } from './authenticate.ts';
import { httpBindings } from './http-rule.ts';

/** Refuses a call that has only the public key and comes from a page whose origin the account does not allow. */
export type RequireAllowedOrigin = (request: FastifyRequest, credentials: Credentials) => void;

/** Time for which a browser caches a preflight response: the longest that any browser allows. */
const PREFLIGHT_MAX_AGE_S = 7_200;
const ALLOWED_HEADERS = [...cors.allowedHeaders, 'public-api-key', 'x-idempotency-key', 'accept']
  .join(', ')
  .toLowerCase();
const EXPOSED_HEADERS = [...cors.exposedHeaders, 'idempotent-replayed', 'location', 'retry-after'].join(', ');

/**
 * Lets pages of other origins call the rpcs that are `for_browsers`, in every protocol that a browser speaks (the CORS
 * protocol, https://fetch.spec.whatwg.org). A preflight names no account, so every preflight succeeds; the call itself
 * is refused if the key's account does not allow the origin. The page can read that refusal, but learns nothing else
 * from it.
 *
 * @param isOwnOrigin returns true for the origins of the service's own pages.
 */
export function admitBrowsers(
  app: FastifyInstance,
  services: readonly DescService[],
  isOwnOrigin: (origin: string, request: FastifyRequest) => boolean,
): RequireAllowedOrigin {
  const isForBrowsers = pathsForBrowsers(services);
  app.addHook('onRequest', (request, reply, done) => {
    const { origin } = request.headers;
    if (origin === undefined || !isForBrowsers(request.url)) return done();
    reply.headers({
      'access-control-allow-origin': origin,
      'access-control-expose-headers': EXPOSED_HEADERS,
      vary: 'origin',
    });
    if (request.method !== 'OPTIONS') return done();
    reply
      .code(204)
      .headers({
        'access-control-allow-methods': 'GET, POST',
        'access-control-allow-headers': ALLOWED_HEADERS,
        'access-control-max-age': PREFLIGHT_MAX_AGE_S,
      })
      .send();
  });
  return (request, { secretPresented, allowedOrigins = [] }) => {
    const { origin } = request.headers;
    if (origin === undefined || secretPresented || !isForBrowsers(request.url)) return;
    if (allowedOrigins.includes(origin) || isOwnOrigin(origin, request)) return;
    throw new ServiceError(
      'ORIGIN_NOT_ALLOWED',
      'the account does not allow calls from pages of this origin (npm run account -- origins)',
    );
  };
}

/** Returns a predicate for the REST and rpc paths of rpcs that are `for_browsers`. */
function pathsForBrowsers(services: readonly DescService[]): (url: string) => boolean {
  const patterns = services.flatMap(({ typeName, methods }) =>
    methods
      .filter((method) => hasOption(method, for_browsers) && getOption(method, for_browsers))
      .flatMap((method) => [`/${typeName}/${method.name}`, ...httpBindings(method).map(({ url }) => url)]),
  );
  const known = new RegExp(
    `^(?:${patterns.map((url) => url.replaceAll('.', '\\.').replaceAll(/:\w+/g, '[^/?]+')).join('|')})/?(?:\\?|$)`,
  );
  return (url) => known.test(url);
}
