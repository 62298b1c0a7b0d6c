import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from './api-error.ts';
import { type Behaviour, isBefore } from './behaviour.ts';
import type { Books, Recorded } from './books.ts';
import { type Decided, decideCharge, decideVerification } from './charges.ts';
import { decideCode, listBanks } from './codes.ts';
import { type Call, currentAnswer } from './entries.ts';
import { LEDGER_PAGE, type Ledger } from './ledger.ts';
import type { LedgerEntry } from './ledger-entry.ts';
import type { Exchange, Misbehaviour } from './misbehaviour.ts';
import { decideOperation, type OperationKind, readOperation } from './operations.ts';
import type { JsonRecord } from './request-body.ts';
import { SANDBOX_ACCOUNT, writeSettlementReport } from './settlement-report.ts';
import { decideWalletAgreement, decideWalletEnrollment, decideWalletOrder } from './wallets.ts';

/** Dependencies of the API. */
export type ApiDeps = {
  readonly ledger: Ledger;
  readonly books: Books;
  readonly misbehaviour: Misbehaviour;
  readonly publicUrl: () => string;
};

const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,255}$/;
const ACCOUNT = /^[A-Za-z0-9_-]{1,64}$/;

type Decide = (body: JsonRecord, call: Call, publicUrl: string) => Decided;

const CREATIONS: Readonly<Record<string, Decide>> = {
  '/v1/charges': decideCharge,
  '/v1/verifications': decideVerification,
  '/v1/wallet-orders': decideWalletOrder,
  '/v1/wallet-enrollments': decideWalletEnrollment,
  '/v1/wallet-agreements': decideWalletAgreement,
  '/v1/codes': decideCode,
};

const OPERATIONS: Readonly<Record<string, OperationKind>> = {
  '/v1/captures': 'capture',
  '/v1/cancellations': 'cancellation',
  '/v1/refunds': 'refund',
  '/v1/completions': 'completion',
};

/** Registers the API calls. */
export function registerApi(api: FastifyInstance, deps: ApiDeps): void {
  registerCreations(api, deps);
  registerOperations(api, deps);
  registerReading(api, deps);
}

function registerCreations(api: FastifyInstance, deps: ApiDeps): void {
  for (const [path, decide] of Object.entries(CREATIONS)) {
    api.post(path, (request, reply) => {
      const { entry, behaviour } = decide(readBody(request), readCall(request), deps.publicUrl());
      return perform(deps, { request, reply }, entry.idempotencyKey, behaviour, () =>
        deps.books.record(entry),
      );
    });
  }
}

function registerOperations(api: FastifyInstance, deps: ApiDeps): void {
  for (const [path, kind] of Object.entries(OPERATIONS)) {
    api.post(path, (request, reply) => {
      const operation = readOperation(kind, readBody(request));
      const call = readCall(request);
      return perform(deps, { request, reply }, call.idempotencyKey, operation.behaviour, () =>
        deps.books.operate(operation.payment, (payment) => decideOperation(payment, operation, call)),
      );
    });
  }
}

/** Performs a call, and misbehaves if the call requests it. */
async function perform(
  { ledger, misbehaviour }: ApiDeps,
  exchange: Exchange,
  idempotencyKey: string,
  behaviour: Behaviour,
  act: () => Promise<Recorded>,
): Promise<FastifyReply> {
  const { reply } = exchange;
  // Only the first call gets the misbehaviour: a repeat gets the recorded response.
  const first = !isBefore(behaviour) || !(await ledger.findByKey(idempotencyKey));
  if (first && misbehaviour.before(behaviour, exchange)) return reply;
  if (behaviour.kind === 'delay') await misbehaviour.delay(behaviour.delayMs);
  const { entry, isNew } = await act();
  if (isNew && misbehaviour.after(behaviour, exchange, entry)) return reply;
  if (!isNew) reply.header('idempotent-replayed', 'true');
  return reply.code(entry.answerStatus).type('application/json').send(entry.answer);
}

function registerReading(api: FastifyInstance, { ledger, books }: ApiDeps): void {
  // Nothing more is done with a closed key: even a call in progress with this key is refused. A payment that waits for
  // its payer expires.
  api.post<{ Params: { key: string } }>('/v1/by-idempotency-key/:key/close', async (request, reply) => {
    const { key } = request.params;
    if (!IDEMPOTENCY_KEY.test(key))
      throw new ApiError(400, 'invalid_request', '1 to 255 printable ASCII', 'key');
    const entry = await books.close(key);
    return answerNow(reply, entry);
  });

  api.get<{ Params: { key: string } }>('/v1/by-idempotency-key/:key', async (request, reply) => {
    const { key } = request.params;
    const entry = IDEMPOTENCY_KEY.test(key) ? await books.findByKey(key) : undefined;
    if (!entry) throw new ApiError(404, 'not_found', 'nothing was recorded under this idempotency key');
    return answerNow(reply, entry);
  });

  api.get<{ Params: { id: string } }>('/v1/by-id/:id', async (request, reply) => {
    const { id } = request.params;
    const entry = /^[a-z]{2}_[0-9a-f-]{36}$/.test(id) ? await books.findById(id) : undefined;
    if (!entry) throw new ApiError(404, 'not_found', 'there is nothing with this identifier');
    return answerNow(reply, entry);
  });

  api.get('/v1/account', async (request) => ({ object: 'account', id: readAccount(request) }));

  api.get<{ Querystring: { method?: unknown } }>('/v1/banks', async (request) =>
    listBanks(request.query.method),
  );

  api.get('/v1/settlements.csv', async (request, reply) => {
    const of = { acquirer: readAcquirer(request), account: readAccount(request) };
    return reply.type('text/csv; charset=utf-8').send(Readable.from(writeSettlementReport(ledger, of)));
  });

  // Lists every entry, without the stored responses, so that a test can check the caller against the ledger.
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

function answerNow(reply: FastifyReply, entry: LedgerEntry): FastifyReply {
  return reply.code(200).type('application/json').send(currentAnswer(entry));
}

function shownEntry(entry: LedgerEntry): object {
  return {
    id: entry.id,
    idempotency_key: entry.idempotencyKey,
    kind: entry.kind,
    payment: entry.parentId ?? null,
    acquirer: entry.acquirer,
    status: entry.status,
    response_code: entry.responseCode ?? null,
    amount: entry.amount,
    currency: entry.currency,
    amount_captured: entry.sums.captured,
    amount_canceled: entry.sums.canceled,
    amount_refunded: entry.sums.refunded,
    reference: (JSON.parse(entry.answer) as { reference?: string | null }).reference ?? null,
  };
}

function readBody(request: FastifyRequest): JsonRecord {
  // A request without a body has no Content-Type either, so it bypasses the parser.
  if (request.body === undefined) throw new ApiError(400, 'invalid_request', 'a JSON body is required');
  return request.body as JsonRecord;
}

function readCall(request: FastifyRequest): Call {
  const idempotencyKey = request.headers['idempotency-key'];
  if (typeof idempotencyKey !== 'string' || !IDEMPOTENCY_KEY.test(idempotencyKey)) {
    throw new ApiError(400, 'invalid_request', '1 to 255 printable ASCII characters', 'Idempotency-Key');
  }
  return { idempotencyKey, acquirer: readAcquirer(request), account: readAccount(request) };
}

function readAcquirer(request: FastifyRequest): Call['acquirer'] {
  const acquirer = request.headers['sandbox-acquirer'] ?? 'ONE';
  if (acquirer !== 'ONE' && acquirer !== 'TWO') {
    throw new ApiError(400, 'invalid_request', 'ONE or TWO', 'Sandbox-Acquirer');
  }
  return acquirer;
}

function readAccount(request: FastifyRequest): string {
  const account = request.headers['sandbox-account'] ?? SANDBOX_ACCOUNT.account;
  if (typeof account !== 'string' || !ACCOUNT.test(account)) {
    throw new ApiError(400, 'invalid_request', '1 to 64 letters, digits, - or _', 'Sandbox-Account');
  }
  return account;
}
