import { randomUUID } from 'node:crypto';
import { type Payment, Payment_Status, Payment_SubStatus_Value } from '#gen/payments/v1/payment_pb.js';
import {
  type CreatePaymentRequest,
  CreatePaymentRequestSchema,
} from '#gen/payments/v1/payment_service_pb.js';
import { createPayment } from '#src/payments/create/create-payment.ts';
import { openStoredResponses } from '#src/payments/keys/stored-response.ts';
import { getPayment } from '#src/payments/read/get-payment.ts';
import type { Database } from '#src/store/engine/database.ts';
import { parseJson } from '#src/wire/parse-json.ts';
import { jsonDecoder } from '#src/wire/wire-json-decode.ts';
import { type CoreDeps, coreDeps } from '../support/core-deps.ts';
import { withAges } from '../support/database-clock.ts';
import { ACCOUNT_ONE, cardPayment, walletPayment, withField } from '../support/payment-requests.ts';
import { restBody } from '../support/stored-responses.ts';
import type { Tables } from '../support/tables.ts';
import { type LedgerProvider, ledgerProvider } from './ledger-provider.ts';

/** Payments on a real database, at a provider with books. */
export type OperatedPayments = {
  readonly database: Database;
  readonly tables: Tables;
  readonly provider: LedgerProvider;
  readonly deps: CoreDeps;
  /** The caller of account one, with a fresh key or the given one; undefined for none. */
  caller(idempotencyKey?: string | null): Caller;
  /** Makes a payment of 100.00 USD by card. */
  pay(options?: PayOptions): Promise<Payment>;
  /** Makes a payment, and also returns its request and response. */
  payAs(
    payer: Caller,
    options?: PayOptions,
  ): Promise<{ request: CreatePaymentRequest; payment: Payment; body: Uint8Array }>;
  /** Reads a payment's state, such as SUCCEEDED/APPROVED. */
  stateOf(payment: Payment): Promise<string>;
  /** Moves the database's clock ahead. */
  setAhead(ms: number): void;
  /** Makes all open work due at once. */
  makeDue(): Promise<unknown>;
};

type PayOptions = {
  readonly capture?: boolean;
  readonly wallet?: boolean;
  /** Pays with a code of this local method. */
  readonly code?: 'PIX' | 'OXXO';
  readonly keepsCard?: boolean;
  readonly customerId?: string;
};

type Caller = { accountId: string; idempotencyKey: string | undefined; secretPresented: true };

const decode = jsonDecoder(CreatePaymentRequestSchema);

/** Opens payments on a database. It has no hooks, so programs that are not tests can use it. */
export async function openOperatedPayments(opened: Database, tables: Tables): Promise<OperatedPayments> {
  const provider = ledgerProvider();
  let aheadMs = 0;
  const database = withAges(opened, (ageMs) => ageMs + aheadMs);
  const deps = coreDeps({
    ...{ database, responses: await openStoredResponses(database) },
    connections: new Map([['ledger', provider.connection]]),
  });
  const caller = (key: string | null = randomUUID()): Caller => ({
    accountId: ACCOUNT_ONE,
    idempotencyKey: key ?? undefined,
    secretPresented: true,
  });

  async function payAs(
    payer: Caller,
    { capture = true, wallet = false, code, keepsCard = false, customerId = '' }: PayOptions = {},
  ) {
    const amount = { currency: 'USD', value: '100.00' };
    const type = code ?? (wallet ? 'WALLET' : undefined);
    const json = type
      ? withField(withField(walletPayment(), 'amount', amount), 'payment_method', { type })
      : withField(withField(cardPayment(), 'amount', amount), 'payment_method.detail.card.capture', capture);
    const keeping = withField(json, 'payment_method.vault_on_success', keepsCard);
    const asked = withField(keeping, 'customer_payer.id', customerId);
    const request = decode(parseJson(Buffer.from(JSON.stringify(asked))));
    const made = await createPayment(deps, request, payer);
    return { request, payment: made.record, body: restBody(made) };
  }

  return {
    database,
    tables,
    provider,
    deps,
    caller,
    payAs,
    pay: async (options) => (await payAs(caller(), options)).payment,
    async stateOf({ id }) {
      const { status, subStatus } = await getPayment(deps, id, caller());
      return `${Payment_Status[status]}/${Payment_SubStatus_Value[subStatus]}`;
    },
    setAhead(ms) {
      aheadMs = ms;
    },
    makeDue: () => tables.query('UPDATE transaction SET check_at = now() WHERE check_at IS NOT NULL'),
  };
}
