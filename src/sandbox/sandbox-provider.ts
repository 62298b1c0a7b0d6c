import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { registerApi } from './api.ts';
import { ApiError, errorBody } from './api-error.ts';
import { keepBooks } from './books.ts';
import { fileLedger } from './file-ledger.ts';
import { createMisbehaviour } from './misbehaviour.ts';
import { createNotifications } from './notifications.ts';
import { registerPages } from './pages.ts';
import { postgresLedger } from './postgres-ledger.ts';
import { parseBody } from './request-body.ts';
import { createTimers } from './timers.ts';

/** Options of the simulated provider. */
export type SandboxProviderOptions = {
  /**
   * Returns the address at which payers reach the application, its prefix included and without a slash at the end. A
   * function, since an application that listens on any free port learns its address last.
   */
  readonly publicUrl: () => string;
  /** Any of them opens the API. */
  readonly apiKeys: readonly string[];
  /** Notifications are signed with each of these; without any, none are sent. */
  readonly notificationSecrets?: readonly string[];
  /** Address for notifications about payments that name none of their own; by default none are sent. */
  readonly notificationUrl?: string;
} & LedgerLocation;

/** Location of the ledger: a schema `sandbox` of a PostgreSQL database, or a file. */
export type LedgerLocation = { readonly databaseUrl: string } | { readonly ledgerFile: string };

const BODY_LIMIT_BYTES = 256 * 1024;

/**
 * The simulated payment provider, a Fastify plugin: registered under a prefix by the service, or alone by main.ts.
 * Its ledger is on disk before it answers, and a repeat of an idempotency key gets the first answer. README.md beside
 * this file describes its API.
 */
export async function sandboxProvider(app: FastifyInstance, options: SandboxProviderOptions): Promise<void> {
  const ledger =
    'ledgerFile' in options ? fileLedger(options.ledgerFile) : postgresLedger(options.databaseUrl);
  const misbehaviour = createMisbehaviour();
  const timers = createTimers((error) => app.log.error({ code: error.name }, 'the sandbox provider failed'));
  const { notificationUrl: url, notificationSecrets: secrets = [] } = options;
  const notifications = createNotifications({ url, secrets }, timers);
  const books = keepBooks(ledger, notifications, timers);
  app.addHook('preClose', async () => misbehaviour.release());
  app.addHook('onClose', async () => {
    await Promise.all([timers.close(), notifications.close()]);
    await ledger.close();
  });
  await ledger.prepare();

  readJsonStrictly(app);
  app.setErrorHandler(answerError);
  app.setNotFoundHandler((_request, reply) =>
    reply.code(404).send(errorBody('not_found', 'there is no such address')),
  );
  await app.register(async (api) => {
    api.addHook('onRequest', authenticator(options.apiKeys));
    registerApi(api, { ledger, books, misbehaviour, publicUrl: options.publicUrl });
  });
  await app.register(async (pages) => registerPages(pages, books));
}

/** Compares hashes, so that neither content nor length of a key shows in the time taken. */
function authenticator(apiKeys: readonly string[]): (request: FastifyRequest) => Promise<void> {
  const known = apiKeys.map((key) => sha256(`Bearer ${key}`));
  return async (request) => {
    const given = sha256(request.headers.authorization ?? '');
    const matches = known.filter((key) => timingSafeEqual(key, given));
    if (matches.length === 0) throw new ApiError(401, 'authentication', 'the API key is missing or wrong');
  };
}

/** JSON with the provider's own limits, whatever parsers the application around it has. */
function readJsonStrictly(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<string>(
    'application/json',
    { parseAs: 'string', bodyLimit: BODY_LIMIT_BYTES },
    async (_request: FastifyRequest, body: string) => parseBody(body),
  );
}

/** Answers with what an ApiError says, and with the bare status of everything else. */
function answerError(
  error: Error & { statusCode?: number; code?: string },
  request: FastifyRequest,
  reply: FastifyReply,
) {
  // Fastify closes after a body that it cannot parse; HTTP/2 knows no such header, and Node would print a warning.
  if (request.raw.httpVersionMajor === 2) reply.removeHeader('connection');
  if (error instanceof ApiError) {
    return reply.code(error.status).send(errorBody(error.type, error.message, error.param));
  }
  const status = error.statusCode ?? 500;
  if (status < 500)
    return reply.code(status).send(errorBody('invalid_request', 'the request cannot be read'));
  // A body that broke off is its sender's doing.
  if (request.raw.errored !== error) request.log.error({ code: error.code }, 'the sandbox provider failed');
  return reply.code(500).send(errorBody('internal', 'something went wrong'));
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
