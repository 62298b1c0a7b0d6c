import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { CheckoutService, CheckoutSessionSchema } from '#gen/payments/v1/checkout_service_pb.js';
import { CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import { StoredPaymentMethodSchema } from '#gen/payments/v1/payment_method_service_pb.js';
import { eraseFrom } from '#src/payments/erase-payments.ts';
import type { StoredResponses } from '#src/payments/keys/stored-response.ts';
import { type PayerHashKeys, payerHashes } from '#src/payments/payer-hashes.ts';
import { decodeRecord } from '#src/payments/stored-record.ts';
import { invalidParameters, ServiceError } from '#src/service-error.ts';
import type { Database } from '#src/store/engine/database.ts';
import {
  type EraseEvent,
  eraseMethodEvents,
  erasePaymentsOfPayer,
  type PayerName,
  type PayerPayment,
  readRemains,
  scanPayer,
} from '#src/store/engine/payer-payments.ts';
import { NIL_UUID } from '#src/store/engine/rows.ts';
import { STEP_TIMEOUT_MS, type Step, sweep } from '#src/store/engine/sweep.ts';
import { eraseSessions, listSessionsOf } from '#src/store/tables/checkout-sessions.ts';
import { listPayers } from '#src/store/tables/customers.ts';
import { keepResponse, listResponses } from '#src/store/tables/replayed-calls.ts';
import { eraseUnownedMethods } from '#src/store/tables/stored-methods.ts';
import { isUuid } from '#src/store/tables/stored-objects.ts';
import { deleteCustomer, erasedMethod } from './delete-customer.ts';
import { emitMethodEvent } from './emit-method-event.ts';

/** A payer who asks to be forgotten: a customer, or everybody with an e-mail address. */
export type Payer = { readonly customerId: string } | { readonly email: string };

/** The result of an erasure, or of its dry run. */
export type ErasedPayer = {
  /** The customers, by id; without those that were erased before. */
  readonly customerIds: readonly string[];
  readonly payments: number;
  /** The payments that keep their data until they end. */
  readonly open: readonly PayerPayment[];
};

/** Options for the erasure of a payer. */
export type ErasePayerOptions = {
  readonly keys: PayerHashKeys;
  /** The stored form of the responses to later retries; undefined for a dry run. */
  readonly response: StoredResponses['own'] | undefined;
  /** Called after each step of the search. */
  readonly onStep: (step: Step) => void;
};

/**
 * Erases a payer's personal data: their customer with its stored methods, and every payment of theirs that has nothing
 * open, with its sessions, notifications, events and responses. The hashes by which the payments are found go last, so
 * that the next run completes an interrupted one. May run alongside the service.
 */
export async function erasePayer(
  database: Database,
  accountId: string,
  payer: Payer,
  { keys, response, onStep }: ErasePayerOptions,
): Promise<ErasedPayer> {
  const name = await nameOf(database, accountId, payer, keys);
  const { customerIds } = name;
  const find = () => findPayments(database, accountId, name, onStep);
  const found = await find();
  const closed = found.filter(({ isOpen }) => !isOpen).map(({ id }) => id);
  const open = found.filter(({ isOpen }) => isOpen);
  if (!response) return { customerIds, payments: closed.length, open };
  const payments = await eraseAll(database, accountId, { customerIds, paymentIds: closed }, response);
  const erased: string[] = [];
  for (const id of customerIds) if (await erasedNow(database, accountId, id)) erased.push(id);
  // Something about the others was opened or written meanwhile.
  return { customerIds: erased, payments, open: payments < closed.length ? await find() : open };
}

/** @throws ServiceError INVALID_PARAMETERS for a text that is no address. */
async function nameOf(
  database: Database,
  accountId: string,
  payer: Payer,
  keys: PayerHashKeys,
): Promise<PayerName> {
  if ('customerId' in payer) return { customerIds: [payer.customerId], emailHash: undefined };
  const emailHash = emailHashOf(keys, accountId, payer.email);
  if (emailHash === undefined)
    throw invalidParameters([
      { field: 'email', code: 'INVALID_FORMAT', message: 'must be an e-mail address' },
    ]);
  const isTheirs = (email: string) => emailHashOf(keys, accountId, email) === emailHash;
  return { customerIds: await customersOf(database, accountId, isTheirs), emailHash };
}

async function findPayments(
  database: Database,
  accountId: string,
  name: PayerName,
  onStep: (step: Step) => void,
): Promise<PayerPayment[]> {
  const found: PayerPayment[] = [];
  await sweep((after) => scanPayer(database, accountId, name, (one) => found.push(one), after), {
    dryRun: true,
    onStep,
  });
  return found;
}

/** Returns the hash by which the payments with an address are found; undefined for a text that is none. */
function emailHashOf(keys: PayerHashKeys, accountId: string, email: string): string | undefined {
  return payerHashes(keys, accountId, '', { email }).payerEmailHash;
}

async function customersOf(
  database: Database,
  accountId: string,
  isTheirs: (email: string) => boolean,
): Promise<string[]> {
  const found: string[] = [];
  let last: string | undefined = NIL_UUID;
  while (last !== undefined) {
    const after: string = last;
    const page = await database.transaction((run) => listPayers(run, accountId, after), STEP_TIMEOUT_MS);
    for (const { id, payer } of page) {
      const { email } = fromBinary(CustomerPayerSchema, payer);
      if (email !== undefined && isTheirs(email)) found.push(id);
    }
    last = page.at(-1)?.id;
  }
  return found;
}

async function eraseAll(
  database: Database,
  accountId: string,
  {
    customerIds,
    paymentIds,
  }: { readonly customerIds: readonly string[]; readonly paymentIds: readonly string[] },
  response: StoredResponses['own'],
): Promise<number> {
  const sessions = new Set<string>();
  const methods = await readRemains(database, accountId, paymentIds, (record) => {
    const id = decodeRecord(record).checkout?.session ?? '';
    if (isUuid(id)) sessions.add(id);
  });
  await eraseMethodEvents(database, accountId, methodEvents({ customerIds, methods }));
  await database.transaction(async (run) => {
    for (const ended of await eraseUnownedMethods(run, accountId, methods)) await emitMethodEvent(run, ended);
  }, STEP_TIMEOUT_MS);
  const ended = await database.transaction(async (run) => {
    for (const id of await listSessionsOf(run, accountId, customerIds)) sessions.add(id);
    return eraseSessions(run, accountId, [...sessions]);
  }, STEP_TIMEOUT_MS);
  await eraseSessionResponses(database, accountId, new Set(ended));
  return erasePaymentsOfPayer(database, accountId, paymentIds, eraseFrom(response));
}

/** Erases the events of the methods of customers, and of the methods with these ids. */
function methodEvents(of: {
  readonly customerIds: readonly string[];
  readonly methods: readonly string[];
}): EraseEvent {
  return ({ type, record }) => {
    if (!type.startsWith('enrollment.')) return undefined;
    const method = fromBinary(StoredPaymentMethodSchema, record);
    const isTheirs = of.customerIds.includes(method.customerId) || of.methods.includes(method.id);
    return isTheirs ? toBinary(StoredPaymentMethodSchema, erasedMethod(method)) : undefined;
  };
}

async function eraseSessionResponses(database: Database, accountId: string, sessions: ReadonlySet<string>) {
  const { name } = CheckoutService.method.createCheckoutSession;
  let last: string | undefined = '';
  while (sessions.size > 0 && last !== undefined) {
    const after: string = last;
    last = await database.transaction(async (run) => {
      const page = await listResponses(run, accountId, name, after);
      for (const call of page) {
        const session = fromBinary(CheckoutSessionSchema, call.response);
        if (!sessions.has(session.checkoutSession)) continue;
        const left = create(CheckoutSessionSchema, {
          ...{ ...session, paymentDescription: '', metadata: [] },
          callbackUrl: undefined,
        });
        await keepResponse(run, call, toBinary(CheckoutSessionSchema, left));
      }
      return page.at(-1)?.idempotencyKey;
    }, STEP_TIMEOUT_MS);
  }
}

/** Erases a customer. @returns false if it does not exist, or was erased before. */
async function erasedNow(database: Database, accountId: string, id: string): Promise<boolean> {
  try {
    await deleteCustomer({ database }, accountId, id);
    return true;
  } catch (error) {
    if (error instanceof ServiceError && error.reason === 'CUSTOMER_NOT_FOUND') return false;
    throw error;
  }
}
