import { isIP } from 'node:net';
import type { FastifyInstance } from 'fastify';
import type { Config } from '#src/config.ts';
import { ServiceError } from '#src/service-error.ts';

/**
 * Refuses requests to the sandbox whose Host is a domain that is not ours. Its keys are public knowledge, so a web page
 * could otherwise use it through a domain that resolves to this machine (DNS rebinding). Such a domain has a dot;
 * addresses, localhost and names within a network cannot be the page's.
 */
export function requireKnownHost(
  app: FastifyInstance,
  { publicUrl, sandboxPublicUrl }: Pick<Config, 'publicUrl' | 'sandboxPublicUrl'>,
): void {
  const own = new Set([publicUrl, sandboxPublicUrl].map((url) => url && new URL(url).hostname));
  app.addHook('onRequest', (request, _reply, done) => {
    // The listener has refused requests whose Host is no host.
    const name = URL.parse(`http://${request.host}`)?.hostname ?? '';
    if (isSafe(name) || own.has(name)) return done();
    const message =
      'the sandbox serves only addresses, localhost, names without a dot, and the host of PUBLIC_URL; set PUBLIC_URL to this host';
    done(new ServiceError('INVALID_REQUEST', message));
  });
}

function isSafe(name: string): boolean {
  const bare = name.replace(/^\[|\]$|\.$/g, '');
  return isIP(bare) !== 0 || !bare.includes('.') || bare.endsWith('.localhost');
}
