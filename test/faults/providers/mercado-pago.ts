import type { JsonObject } from '@bufbuild/protobuf';
import { parseMoney } from '#src/money.ts';
import {
  FAKE_ACCESS_TOKEN,
  FAKE_WEBHOOK_SECRET,
  startFakeMercadoPago,
  webhookOf,
} from '../../connectors/mercado-pago/fake-mercado-pago.ts';
import { startFront } from './front.ts';
import type { Judge, LedgerLine, Provider } from './provider.ts';

const CURRENCY = 'BRL';

/** Mercado Pago's fake: it redirects payers, shows them codes, and captures their payments by itself. */
export const mercadoPago: Provider = {
  name: 'mercado_pago',
  abilities: new Set([
    'redirects',
    'look_ups',
    'refund_reads',
    'payer_closings',
    'unsigned_notifications',
    'codes',
    'code_closings',
  ]),
  connector: 'mercado-pago',
  timeoutMs: 1_500,
  settings: () => 'country: BR',
  secrets: () => ({ access_token: 'FAULTS_TOKEN', webhook_secret: 'FAULTS_SECRET' }),
  environment: { FAULTS_TOKEN: FAKE_ACCESS_TOKEN, FAULTS_SECRET: FAKE_WEBHOOK_SECRET },
  currencies: [{ currency: CURRENCY, digits: 2 }],
  closesBy: 'close',
  searchLags: true,
  callOf(head) {
    if (/^POST \/(checkout\/preferences|v1\/payments) /.test(head)) return 'charge';
    if (/^POST \/v1\/payments\/\d+\/refunds /.test(head)) return 'operation';
    if (/^PUT \/(checkout\/preferences|v1\/payments)\//.test(head)) return 'close';
    return /^GET \/(v1\/payments|checkout\/preferences)\//.test(head) ? 'look_up' : undefined;
  },
  async start(): Promise<Judge> {
    const fake = await startFakeMercadoPago(CURRENCY);
    const front = await startFront(fake.url, {
      callOf: mercadoPago.callOf,
      keyHeader: 'x-idempotency-key',
      account: (headers) => ({ acquirer: 'ONE', headers }),
    });
    let isAlive = true;
    const paymentOf = (transactionId: string) =>
      [...fake.payments.values()].find((one) => one.external_reference === transactionId);
    /** Ends a code that awaits its payer. */
    const end = async (code: JsonObject, status: string, detail: string) => {
      if (code.status !== 'pending') throw new Error(`the code is ${code.status}`);
      fake.move(code, status, detail);
    };
    return {
      port: front.port,
      isAlive: () => isAlive,
      written: async () => '',
      ledger: async () => [
        ...[...fake.preferences.values()].flatMap((one) => linesOf(one, fake.payments)),
        ...[...fake.payments.values()].filter(isCode).map(lineOfCode),
      ],
      async agree({ id }) {
        const code = fake.payments.get(id);
        if (code) {
          await end(code, 'approved', 'accredited');
          return '';
        }
        const payment = fake.pay(fake.preferences.get(id) ?? {});
        return `payment_id=${payment.id}&status=approved&preference_id=${id}`;
      },
      expire: ({ id }) => end(fake.payments.get(id) ?? {}, 'cancelled', 'expired'),
      notification({ idempotency_key }, { isForged }) {
        const id = String(paymentOf(idempotency_key)?.id ?? 1);
        return webhookOf(id, isForged ? { secret: 'forged-secret-signature' } : {});
      },
      trouble: front.trouble,
      hasHeardOf: () => true,
      async kill() {
        isAlive = false;
        await Promise.all([front.close(), fake.close()]);
      },
    };
  },
};

/** The states of a code's entry. */
const CODE_STATES: Readonly<Record<string, string>> = {
  ...{ pending: 'created', in_process: 'created', rejected: 'declined' },
  ...{ 'cancelled/expired': 'expired', 'cancelled/by_collector': 'canceled' },
};

/** Returns true for a payment that was made by itself, and not on a preference. */
function isCode({ point_of_interaction, transaction_details }: JsonObject): boolean {
  return point_of_interaction !== undefined || transaction_details !== undefined;
}

/** Returns the entry of a code. */
function lineOfCode(code: JsonObject): LedgerLine {
  const { id, status, status_detail: detail, transaction_amount, transaction_amount_refunded } = code;
  const state = CODE_STATES[`${status}`] ?? CODE_STATES[`${status}/${detail}`] ?? 'paid';
  const amount = units(transaction_amount);
  return {
    ...{ id: String(id), idempotency_key: String(code.external_reference), kind: 'code', acquirer: 'ONE' },
    ...{ status: state, amount, currency: CURRENCY, amount_captured: state === 'paid' ? amount : 0 },
    amount_refunded: units(Number(transaction_amount_refunded).toFixed(2)),
    ...{ response_code: null, reference: null },
  };
}

function units(amount: unknown): number {
  return Number(parseMoney(String(amount), CURRENCY)?.minorUnits);
}

/**
 * Returns the entries of a preference: its first payment is part of its own entry, and each later payment has a
 * separate entry before it.
 */
function linesOf(preference: JsonObject, payments: ReadonlyMap<string, JsonObject>): LedgerLine[] {
  const items = preference.items as { unit_price: number; quantity: number }[];
  const line: LedgerLine = {
    id: String(preference.id),
    idempotency_key: String(preference.external_reference),
    kind: 'wallet_checkout',
    acquirer: 'ONE',
    status: 'open',
    amount: units(items.reduce((sum, item) => sum + item.unit_price * item.quantity, 0).toFixed(2)),
    currency: CURRENCY,
    amount_captured: 0,
    amount_refunded: 0,
    response_code: null,
    reference: null,
  };
  const paid = [...payments.values()]
    .filter(({ external_reference: reference }) => reference === preference.external_reference)
    .map((payment) => ({
      ...line,
      status: 'paid',
      amount_captured: units(payment.transaction_amount),
      amount_refunded: units(Number(payment.transaction_amount_refunded).toFixed(2)),
    }));
  return paid.length > 0 ? paid.toReversed() : [line];
}
