import { createHash, randomUUID, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ApiError, errorBody } from './api-error.ts';
import { type Behaviour, isBefore, orderedBehaviour } from './behaviour.ts';
import { type Call, decideCharge } from './charges.ts';
import { checkoutPage, notFoundPage, PAGE_HEADERS } from './checkout-page.ts';
import { fileLedger } from './file-ledger.ts';
import { LEDGER_PAGE, type Ledger, type LedgerEntry } from './ledger.ts';
import { createMisbehaviour, type Exchange, type Misbehaviour } from './misbehaviour.ts';
import { postgresLedger } from './postgres-ledger.ts';
import { type JsonRecord, optionalText, parseBody } from './request-body.ts';
import { decideWalletEnrollment, decideWalletOrder, type OrderDetails } from './wallets.ts';

/** What the simulated provider is started with. */
export type SandboxProviderOptions = {
  /**
   * Where payers reach the application, its prefix included and without a slash at the end. A function, since an
   * application that listens on any free port learns its address last.
   */
  readonly publicUrl: () => string;
  /** Any of them opens the API. */
  readonly apiKeys: readonly string[];
} & LedgerPlace;

/** Where the ledger lies: in a schema `sandbox` of a PostgreSQL database, or in a file. */
export type LedgerPlace = { readonly databaseUrl: string } | { readonly ledgerFile: string };

const BODY_LIMIT_BYTES = 256 * 1024;
const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,255}$/;
const ACCOUNT = /^[A-Za-z0-9_-]{1,64}$/;
const DEFAULT_ACCOUNT = 'acct_sandbox';

/**
 * The simulated payment provider, a Fastify plugin: registered under a prefix by the service, or alone by main.ts.
 * What it did is on disk before it answers, and a repeat of an idempotency key gets the first answer.
 */
export async function sandboxProvider(app: FastifyInstance, options: SandboxProviderOptions): Promise<void> {
  const ledger =
    'ledgerFile' in options ? fileLedger(options.ledgerFile) : postgresLedger(options.databaseUrl);
  const misbehaviour = createMisbehaviour();
  app.addHook('preClose', async () => misbehaviour.release());
  app.addHook('onClose', () => ledger.close());
  await ledger.prepare();

  readJsonStrictly(app);
  app.setErrorHandler(answerError);
  app.setNotFoundHandler((_request, reply) =>
    reply.code(404).send(errorBody('not_found', 'there is no such address')),
  );
  await app.register(async (api) => {
    api.addHook('onRequest', authenticator(options.apiKeys));
    registerCreating(api, ledger, misbehaviour, options.publicUrl);
    registerReading(api, ledger);
  });
  registerCheckout(app, ledger);
}

function registerCreating(
  api: FastifyInstance,
  ledger: Ledger,
  misbehaviour: Misbehaviour,
  publicUrl: () => string,
): void {
  async function create(decided: Decided, exchange: Exchange): Promise<FastifyReply> {
    const { entry, behaviour } = decided;
    const { reply } = exchange;
    // Only the first call meets the misbehaviour: a repeat learns what was recorded.
    const first = !isBefore(behaviour) || !(await ledger.findByKey(entry.idempotencyKey));
    if (first && misbehaviour.before(behaviour, exchange)) return reply;
    if (behaviour.kind === 'delay') await misbehaviour.delay(behaviour.delayMs);
    const recorded = await record(ledger, entry);
    if (recorded.isNew && misbehaviour.after(behaviour, exchange, entry)) return reply;
    return answer(reply, recorded);
  }

  api.post('/v1/charges', (request, reply) =>
    create(decideCharge(readBody(request), readCall(request)), { request, reply }),
  );
  api.post('/v1/wallet-orders', (request, reply) => {
    const entry = decideWalletOrder(readBody(request), readCall(request), publicUrl());
    return create({ entry, behaviour: walletBehaviour(request) }, { request, reply });
  });
  api.post('/v1/wallet-enrollments', (request, reply) => {
    const entry = decideWalletEnrollment(readBody(request), readCall(request));
    return create({ entry, behaviour: walletBehaviour(request) }, { request, reply });
  });
}

type Decided = { readonly entry: LedgerEntry; readonly behaviour: Behaviour };

/** Wallets cannot be declined at once: the payer has not been asked yet. */
function walletBehaviour(request: FastifyRequest): Behaviour {
  const ordered = orderedBehaviour(optionalText(readBody(request), 'description')) ?? { kind: 'approve' };
  if (ordered.kind !== 'decline') return ordered;
  throw new ApiError(400, 'invalid_request', 'only charges are declined', 'description');
}

function registerReading(api: FastifyInstance, ledger: Ledger): void {
  // What was not done under a key by now will never be: a call with it that is still under way finds it taken.
  api.post<{ Params: { key: string } }>('/v1/by-idempotency-key/:key/close', async (request, reply) => {
    const { key } = request.params;
    if (!IDEMPOTENCY_KEY.test(key))
      throw new ApiError(400, 'invalid_request', '1 to 255 printable ASCII', 'key');
    const { entry } = await ledger.record(closedEntry(key));
    return reply.code(entry.answerStatus).type('application/json').send(entry.answer);
  });

  api.get<{ Params: { key: string } }>('/v1/by-idempotency-key/:key', async (request, reply) => {
    const { key } = request.params;
    const entry = IDEMPOTENCY_KEY.test(key) ? await ledger.findByKey(key) : undefined;
    if (!entry) throw new ApiError(404, 'not_found', 'nothing was recorded under this idempotency key');
    return reply.code(200).type('application/json').send(entry.answer);
  });

  // Everything that was done, for who judges the caller by it. What was answered is not repeated.
  api.get<{ Querystring: { after?: string | string[] } }>('/v1/ledger', async (request) => {
    const { after = '' } = request.query;
    const entries = await ledger.entriesAfter(String(after));
    return {
      object: 'ledger',
      entries: entries.map(shownEntry),
      next: entries.length === LEDGER_PAGE ? entries.at(-1)?.id : null,
    };
  });
}

function shownEntry(entry: LedgerEntry): object {
  return {
    id: entry.id,
    idempotency_key: entry.idempotencyKey,
    kind: entry.kind,
    acquirer: entry.acquirer,
    status: entry.status,
    response_code: entry.responseCode ?? null,
    amount: entry.amount,
    currency: entry.currency,
    reference: (JSON.parse(entry.answer) as { reference?: string | null }).reference ?? null,
  };
}

function closedEntry(idempotencyKey: string): LedgerEntry {
  const id = `cl_${randomUUID()}`;
  return {
    id,
    idempotencyKey,
    kind: 'closed',
    acquirer: '',
    status: 'closed',
    responseCode: undefined,
    amount: 0,
    currency: '',
    cardIin: undefined,
    cardLastFour: undefined,
    answerStatus: 200,
    answer: JSON.stringify({ object: 'closed', id, idempotency_key: idempotencyKey }),
    details: undefined,
  };
}

function registerCheckout(app: FastifyInstance, ledger: Ledger): void {
  app.get<{ Params: { id: string } }>('/checkout/:id', async (request, reply) => {
    const { id } = request.params;
    const entry = /^wo_[0-9a-f-]{36}$/.test(id) ? await ledger.findById(id) : undefined;
    reply.headers(PAGE_HEADERS);
    if (entry?.details === undefined) return reply.code(404).send(notFoundPage());
    return reply.code(200).send(checkoutPage(JSON.parse(entry.details) as OrderDetails));
  });
}

/** Records an entry. A key that was used for something else is refused, and nothing is done. */
async function record(ledger: Ledger, entry: LedgerEntry): Promise<{ entry: LedgerEntry; isNew: boolean }> {
  const recorded = await ledger.record(entry);
  const first = recorded.entry;
  if (first.kind === entry.kind && first.amount === entry.amount && first.currency === entry.currency) {
    return recorded;
  }
  throw new ApiError(409, 'idempotency_conflict', 'the idempotency key was used for another request');
}

function answer(reply: FastifyReply, recorded: { entry: LedgerEntry; isNew: boolean }): FastifyReply {
  if (!recorded.isNew) reply.header('idempotent-replayed', 'true');
  return reply.code(recorded.entry.answerStatus).type('application/json').send(recorded.entry.answer);
}

function readBody(request: FastifyRequest): JsonRecord {
  // A request without a body has no Content-Type either, and never meets the parser.
  if (request.body === undefined) throw new ApiError(400, 'invalid_request', 'a JSON body is required');
  return request.body as JsonRecord;
}

function readCall(request: FastifyRequest): Call {
  const idempotencyKey = request.headers['idempotency-key'];
  if (typeof idempotencyKey !== 'string' || !IDEMPOTENCY_KEY.test(idempotencyKey)) {
    throw new ApiError(400, 'invalid_request', '1 to 255 printable ASCII characters', 'Idempotency-Key');
  }
  const acquirer = request.headers['sandbox-acquirer'] ?? 'ONE';
  if (acquirer !== 'ONE' && acquirer !== 'TWO') {
    throw new ApiError(400, 'invalid_request', 'ONE or TWO', 'Sandbox-Acquirer');
  }
  const account = request.headers['sandbox-account'] ?? DEFAULT_ACCOUNT;
  if (typeof account !== 'string' || !ACCOUNT.test(account)) {
    throw new ApiError(400, 'invalid_request', '1 to 64 letters, digits, - or _', 'Sandbox-Account');
  }
  return { idempotencyKey, acquirer, account };
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
