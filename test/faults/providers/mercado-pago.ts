import type { JsonObject } from '@bufbuild/protobuf';
import { parseMoney } from '#src/money.ts';
import {
  FAKE_ACCESS_TOKEN,
  FAKE_WEBHOOK_SECRET,
  startFakeMercadoPago,
  webhookOf,
} from '../../connectors/mercado-pago/fake-mercado-pago.ts';
import { DECLINED_AT_ACQUIRER_ONE } from '../orders.ts';
import { type FrontRequest, startFront } from './front.ts';
import type { Acquirer, Judge, LedgerLine, Provider } from './provider.ts';

const CURRENCY = 'BRL';
const TOKEN_OF_TWO = `${FAKE_ACCESS_TOKEN}-two`;

/** Mercado Pago's refusals by the ISO 8583 codes of the cases. */
const REFUSALS: Readonly<Record<string, string>> = {
  '04': 'cc_rejected_card_disabled',
  '05': 'cc_rejected_other_reason',
  '12': 'cc_rejected_bad_filled_other',
  '14': 'cc_rejected_bad_filled_card_number',
  '41': 'cc_rejected_blacklist',
  '43': 'cc_rejected_blacklist',
  '51': 'cc_rejected_insufficient_amount',
  '54': 'cc_rejected_bad_filled_date',
  '59': 'cc_rejected_blacklist',
  '91': 'cc_rejected_card_error',
  N7: 'cc_rejected_bad_filled_security_code',
  R1: 'authorization_revoked',
  X9: 'invented_decline',
};

/** Mercado Pago's fake: cards, payers who are redirected or get codes, whose money it takes by itself. */
export const mercadoPago: Provider = {
  name: 'mercado_pago',
  abilities: new Set([
    'cards',
    'authorizations',
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
  secrets: (acquirer) => ({ access_token: `FAULTS_TOKEN_${acquirer}`, webhook_secret: 'FAULTS_SECRET' }),
  environment: {
    FAULTS_TOKEN_ONE: FAKE_ACCESS_TOKEN,
    FAULTS_TOKEN_TWO: TOKEN_OF_TWO,
    FAULTS_SECRET: FAKE_WEBHOOK_SECRET,
  },
  currencies: [{ currency: CURRENCY, digits: 2 }],
  closesBy: 'close',
  searchLags: true,
  callOf(head) {
    if (/^POST \/(checkout\/preferences|v1\/payments) /.test(head)) return 'charge';
    if (/^POST \/v1\/payments\/\d+\/refunds /.test(head)) return 'operation';
    // Only operations on authorizations have a key; the closing of a code has none.
    if (/^PUT \/v1\/payments\/[\s\S]*x-idempotency-key/i.test(head)) return 'operation';
    if (/^PUT \/(checkout\/preferences|v1\/payments)\//.test(head)) return 'close';
    return /^GET \/(v1\/payments|checkout\/preferences)\//.test(head) ? 'look_up' : undefined;
  },
  async start(): Promise<Judge> {
    const fake = await startFakeMercadoPago(CURRENCY);
    /** The first requests that were carried out, by our transaction id. */
    const heard = new Map<string, Heard>();
    const front = await startFront(fake.url, {
      callOf: mercadoPago.callOf,
      keyHeader: 'x-idempotency-key',
      account: (headers) => ({
        acquirer: headers.authorization === `Bearer ${TOKEN_OF_TWO}` ? 'TWO' : 'ONE',
        headers: { ...headers, authorization: `Bearer ${FAKE_ACCESS_TOKEN}` },
      }),
      changed: declinedAtOne,
      /** Refuses the payment's token, as if its cardholder had the name of a refusal. */
      async decline(request, code, ask) {
        const token = fake.tokens.get(JSON.parse(request.body).token);
        if (token) token.card.cardholder = { name: REFUSALS[code] ?? '' };
        return ask(request);
      },
      heard({ method, path, body, acquirer }) {
        if (method !== 'POST' || path !== '/v1/payments') return;
        const { external_reference: id, transaction_amount: amount } = JSON.parse(body);
        if (!heard.has(id)) heard.set(id, { acquirer, amount });
      },
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
        ...[...fake.payments.values()]
          .filter(isCard)
          .map((one) => lineOfCard(one, heard.get(String(one.external_reference)))),
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
      // A charge that it does not find stays unknown: its token may still arrive.
      hasHeardOf: (transactionId, isCard) => !isCard || paymentOf(transactionId) !== undefined,
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
function isCode(payment: JsonObject): boolean {
  const { point_of_interaction, transaction_details } = payment;
  return !isCard(payment) && (point_of_interaction !== undefined || transaction_details !== undefined);
}

function isCard({ card }: JsonObject): boolean {
  return card !== undefined;
}

/** The account that was charged, and the amount before a capture of a part. */
type Heard = { readonly acquirer: Acquirer; readonly amount: number };

/** Names the cardholder like a refusal if the first account is to decline the card. */
function declinedAtOne(request: FrontRequest): FrontRequest {
  const { acquirer, path, body } = request;
  if (acquirer !== 'ONE' || path !== '/v1/card_tokens' || !body.includes(DECLINED_AT_ACQUIRER_ONE)) {
    return request;
  }
  return { ...request, body: JSON.stringify({ ...JSON.parse(body), cardholder: { name: 'FUND' } }) };
}

/** Returns the entry of a charge by card. */
function lineOfCard(payment: JsonObject, heard: Heard | undefined): LedgerLine {
  const { id, status, transaction_amount, transaction_amount_refunded } = payment;
  const isRejected = status === 'rejected';
  const isTaken = status === 'approved' || status === 'refunded';
  return {
    ...{ id: String(id), idempotency_key: String(payment.external_reference), kind: 'charge' },
    ...{ acquirer: heard?.acquirer ?? 'ONE', status: isRejected ? 'declined' : 'approved' },
    ...{ amount: units((heard?.amount ?? Number(transaction_amount)).toFixed(2)), currency: CURRENCY },
    amount_captured: isTaken ? units(Number(transaction_amount).toFixed(2)) : 0,
    amount_refunded: units(Number(transaction_amount_refunded).toFixed(2)),
    ...{ response_code: isRejected ? null : '00', reference: null },
  };
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
