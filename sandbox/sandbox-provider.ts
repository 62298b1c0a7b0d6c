import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { registerApi } from './api.ts';
import { ApiError, errorBody } from './api-error.ts';
import { keepBooks } from './books.ts';
import { openLedger } from './ledger.ts';
import { createMisbehaviour } from './misbehaviour.ts';
import { createNotifications } from './notifications.ts';
import { registerPages } from './pages.ts';
import { parseBody } from './request-body.ts';
import { createTimers } from './timers.ts';

/** Options for the simulated provider. */
export type SandboxProviderOptions = {
  /**
   * Returns the URL at which payers reach the application, with its prefix and without a trailing slash. It is a
   * function because an application that listens on any free port learns its URL only then.
   */
  readonly publicUrl: () => string;
  /** API keys, each of which grants access. */
  readonly apiKeys: readonly string[];
  /** Secrets with which each notification is signed; if there are none, no notifications are sent. */
  readonly notificationSecrets?: readonly string[];
  /** URL for notifications about payments that name none; by default, no notifications are sent for them. */
  readonly notificationUrl?: string;
  /** PostgreSQL database whose schema `sandbox` contains the ledger. */
  readonly databaseUrl: string;
};

const BODY_LIMIT_BYTES = 256 * 1024;

/**
 * The simulated payment provider as a Fastify plugin. The service registers the plugin under a prefix; main.ts runs it
 * alone. The provider responds only once the ledger is on disk, and a call that repeats an idempotency key gets the
 * first response. README.md in this directory describes the API.
 */
export async function sandboxProvider(app: FastifyInstance, options: SandboxProviderOptions): Promise<void> {
  const ledger = openLedger(options.databaseUrl);
  const misbehaviour = createMisbehaviour();
  const timers = createTimers((error) => app.log.error({ code: error.name }, 'the sandbox provider failed'));
  const { notificationUrl: url, notificationSecrets: secrets = [] } = options;
  const notifications = createNotifications({ url, secrets }, timers);
  const books = keepBooks(ledger, notifications, timers, options.publicUrl);
  app.addHook('preClose', async () => misbehaviour.release());
  app.addHook('onClose', async () => {
    await Promise.all([timers.close(), notifications.close()]);
    await ledger.close();
  });
  await ledger.prepare();

  readJsonStrictly(app);
  app.setErrorHandler(answerError);
  app.setNotFoundHandler((_request, reply) =>
    reply.code(404).send(errorBody('not_found', 'there is nothing at this path')),
  );
  await app.register(async (api) => {
    api.addHook('onRequest', authenticator(options.apiKeys));
    registerApi(api, { ledger, books, misbehaviour, publicUrl: options.publicUrl });
  });
  await app.register(async (pages) => registerPages(pages, books));
}

/** Compares hashes of API keys, so that the timing reveals neither the content nor the length of a key. */
function authenticator(apiKeys: readonly string[]): (request: FastifyRequest) => Promise<void> {
  const known = apiKeys.map((key) => sha256(`Bearer ${key}`));
  return async (request) => {
    const given = sha256(request.headers.authorization ?? '');
    const matches = known.filter((key) => timingSafeEqual(key, given));
    if (matches.length === 0) throw new ApiError(401, 'authentication', 'the API key is missing or wrong');
  };
}

/** Parses JSON with the provider's own limits, regardless of the surrounding application's parsers. */
function readJsonStrictly(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<string>(
    'application/json',
    { parseAs: 'string', bodyLimit: BODY_LIMIT_BYTES },
    async (_request: FastifyRequest, body: string) => parseBody(body),
  );
}

/** Sends an ApiError with its details, and any other error with only its status. */
function answerError(
  error: Error & { statusCode?: number; code?: string },
  request: FastifyRequest,
  reply: FastifyReply,
) {
  // Fastify closes the connection after a body that it cannot parse. HTTP/2 has no such header, and Node would warn.
  if (request.raw.httpVersionMajor === 2) reply.removeHeader('connection');
  if (error instanceof ApiError) {
    return reply.code(error.status).send(errorBody(error.type, error.message, error.param));
  }
  const status = error.statusCode ?? 500;
  if (status < 500)
    return reply.code(status).send(errorBody('invalid_request', 'the request cannot be read'));
  // A truncated body is the sender's fault.
  if (request.raw.errored !== error) request.log.error({ code: error.code }, 'the sandbox provider failed');
  return reply.code(500).send(errorBody('internal', 'something went wrong'));
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
