import { createHash, randomUUID, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ApiError, errorBody } from './api-error.ts';
import { type Call, decideCharge } from './charges.ts';
import { checkoutPage, notFoundPage, PAGE_HEADERS } from './checkout-page.ts';
import { type Ledger, type LedgerEntry, openLedger } from './ledger.ts';
import type { CardBehaviour } from './magic-cards.ts';
import { createMisbehaviour, type Misbehaviour } from './misbehaviour.ts';
import { type JsonRecord, parseBody } from './request-body.ts';
import { decideWalletEnrollment, decideWalletOrder, type OrderDetails } from './wallets.ts';

/** What the simulated provider is started with. */
export type SandboxProviderOptions = {
  /** PostgreSQL, in which the provider keeps a schema `sandbox` of its own. */
  readonly databaseUrl: string;
  /**
   * Where payers reach the application, its prefix included and without a slash at the end. A function, since an
   * application that listens on any free port learns its address last.
   */
  readonly publicUrl: () => string;
  /** Any of them opens the API. */
  readonly apiKeys: readonly string[];
};

const BODY_LIMIT_BYTES = 256 * 1024;
const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,255}$/;
const ACCOUNT = /^[A-Za-z0-9_-]{1,64}$/;
const DEFAULT_ACCOUNT = 'acct_sandbox';

/**
 * The simulated payment provider, a Fastify plugin: registered under a prefix by the service, or alone by main.ts.
 * What it did is on disk before it answers, and a repeat of an idempotency key gets the first answer.
 */
export async function sandboxProvider(app: FastifyInstance, options: SandboxProviderOptions): Promise<void> {
  const ledger = openLedger(options.databaseUrl);
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
    registerApi(api, ledger, misbehaviour, options.publicUrl);
  });
  registerCheckout(app, ledger);
}

function registerApi(
  api: FastifyInstance,
  ledger: Ledger,
  misbehaviour: Misbehaviour,
  publicUrl: () => string,
): void {
  api.post('/v1/charges', async (request, reply) => {
    const { entry, behaviour } = decideCharge(readBody(request), readCall(request));
    if (behaviour.kind === 'delay') await misbehaviour.delay(behaviour.delayMs);
    const recorded = await record(ledger, entry);
    // Only the first call meets the misbehaviour: a repeat learns what was recorded.
    if (recorded.isNew && misbehave(behaviour, misbehaviour, request, reply)) return reply;
    return answer(reply, recorded);
  });

  api.post('/v1/wallet-orders', async (request, reply) => {
    const entry = decideWalletOrder(readBody(request), readCall(request), publicUrl());
    return answer(reply, await record(ledger, entry));
  });

  api.post('/v1/wallet-enrollments', async (request, reply) => {
    const entry = decideWalletEnrollment(readBody(request), readCall(request));
    return answer(reply, await record(ledger, entry));
  });

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

/** Whether the call was answered, or left unanswered, in a way of its own. */
function misbehave(
  behaviour: CardBehaviour,
  misbehaviour: Misbehaviour,
  request: FastifyRequest,
  reply: FastifyReply,
): boolean {
  switch (behaviour.kind) {
    case 'hang':
      misbehaviour.hang(request, reply);
      return true;
    case 'reset':
      misbehaviour.reset(request, reply);
      return true;
    case 'server_error':
      reply.code(500).send(errorBody('internal', 'something went wrong'));
      return true;
    case 'unreadable':
      reply.code(200).type('text/html').send('<!doctype html><title>Welcome</title><h1>It works!</h1>');
      return true;
    case 'approve':
    case 'decline':
    case 'decline_at_acquirer_one':
    case 'delay':
      return false;
  }
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
  if (error instanceof ApiError) {
    return reply.code(error.status).send(errorBody(error.type, error.message, error.param));
  }
  const status = error.statusCode ?? 500;
  if (status < 500)
    return reply.code(status).send(errorBody('invalid_request', 'the request cannot be read'));
  request.log.error({ code: error.code }, 'the sandbox provider failed');
  return reply.code(500).send(errorBody('internal', 'something went wrong'));
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
