import Fastify from 'fastify';
import { type StaticFile, staticFile } from './static-file.ts';

/** Keys filled in for trying out calls, keyed by the name of the security scheme in the OpenAPI document. */
export type FilledInKeys = Readonly<Record<string, string>>;

/**
 * Headers of the API reference: only scripts and calls of this origin are allowed. Inline styles are allowed too,
 * because the viewer sets some as attributes, but they can load nothing from elsewhere.
 */
export const REFERENCE_HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src 'self' data:; " +
    "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-cache',
};

/**
 * The API reference: the Scalar viewer (https://github.com/scalar/scalar) for /openapi.json. This service hosts its
 * script.
 */
export const REFERENCE_PAGE = `<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>API reference · Payments service</title>
</head><body><div id="reference"></div><noscript>The reference needs JavaScript. Its content is also in <a href="/openapi.json">/openapi.json</a>.</noscript>
<script src="/docs/viewer.js"></script><script src="/docs/start.js"></script></body></html>`;

/** Idempotency key in the document's examples. The page replaces it with a random one for each call. */
export const SAMPLE_KEY = 'new-for-each-send';

/**
 * Returns the script that starts the viewer, which stores no input and calls no other host. Unless the reader enters an
 * idempotency key, each call has a new one, so that it is not a repeat.
 */
export function startScript(keys: FilledInKeys): string {
  const securitySchemes = Object.fromEntries(
    Object.entries(keys).map(([scheme, value]) => [scheme, { value }]),
  );
  const options = {
    url: '/openapi.json',
    authentication: {
      preferredSecurityScheme: [['public-api-key', 'private-secret-key']],
      securitySchemes,
    },
    withDefaultFonts: false,
    telemetry: false,
    agent: { disabled: true },
    mcp: { disabled: true },
    hideClientButton: true,
    showDeveloperTools: 'never',
    persistAuth: false,
    documentDownloadType: 'direct',
  };
  return `const options = ${JSON.stringify(options)};
options.onBeforeRequest = ({ requestBuilder, request }) => {
  const { headers } = requestBuilder ?? request;
  if (headers.get('x-idempotency-key') !== '${SAMPLE_KEY}') return;
  const bytes = [...crypto.getRandomValues(new Uint8Array(16))];
  headers.set('x-idempotency-key', bytes.map((byte) => byte.toString(16).padStart(2, '0')).join(''));
};
Scalar.createApiReference('#reference', options);
`;
}

/** Loads the viewer's script from its package, which exposes it only through a Fastify plugin. */
export async function loadViewer(): Promise<StaticFile> {
  const { default: plugin } = await import('@scalar/fastify-api-reference');
  const app = Fastify();
  await app.register(plugin, { routePrefix: '/viewer', configuration: { url: '/openapi.json' } });
  const { rawPayload, statusCode } = await app.inject('/viewer/js/scalar.js');
  await app.close();
  if (statusCode !== 200)
    throw new Error('@scalar/fastify-api-reference no longer serves its script at the known path');
  return staticFile('text/javascript; charset=utf-8', rawPayload);
}
