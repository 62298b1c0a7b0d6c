import { fileURLToPath } from 'node:url';
import { parseMoney } from '#src/money.ts';
import {
  FAKE_CLIENT_ID,
  FAKE_CLIENT_SECRET,
  FAKE_ROOT_FILE,
  FAKE_WEBHOOK_ID,
  startFakePayPal,
} from '../../connectors/paypal/fake-paypal.ts';
import { startFront } from './front.ts';
import type { Judge, LedgerLine, Provider } from './provider.ts';

/** PayPal's fake: it redirects payers, and a completion captures their payments. */
export const paypal: Provider = {
  name: 'paypal',
  abilities: new Set([
    'redirects',
    'completions',
    'look_ups',
    'refund_reads',
    'payer_closings',
    'unsigned_notifications',
  ]),
  connector: 'paypal',
  timeoutMs: 2_000,
  settings: () => `webhook_ids: [${FAKE_WEBHOOK_ID}]`,
  secrets: () => ({ client_id: 'FAULTS_CLIENT', client_secret: 'FAULTS_SECRET' }),
  environment: {
    FAULTS_CLIENT: FAKE_CLIENT_ID,
    FAULTS_SECRET: FAKE_CLIENT_SECRET,
    // The service trusts the fake's certificate as it trusts PayPal's.
    NODE_EXTRA_CA_CERTS: fileURLToPath(FAKE_ROOT_FILE),
  },
  currencies: [
    { currency: 'USD', digits: 2 },
    { currency: 'JPY', digits: 0 },
  ],
  closesBy: 'look_up',
  callOf(head) {
    if (/^POST \/v2\/checkout\/orders /.test(head)) return 'charge';
    if (/^POST \/v2\/(checkout\/orders\/\w+\/capture|payments\/captures\/\w+\/refund) /.test(head)) {
      return 'operation';
    }
    return /^GET \/v2\//.test(head) ? 'look_up' : undefined;
  },
  async start(): Promise<Judge> {
    const fake = await startFakePayPal();
    const front = await startFront(fake.url, {
      callOf: paypal.callOf,
      keyHeader: 'paypal-request-id',
      account: (headers) => ({ acquirer: 'ONE', headers }),
    });
    let isAlive = true;
    return {
      port: front.port,
      isAlive: () => isAlive,
      written: async () => '',
      ledger: async () => [...fake.ledger.orders.values()].flatMap(linesOf),
      async agree({ id }) {
        fake.approve(id);
        return `token=${id}&PayerID=QYR5Z8XDVJNXQ`;
      },
      notification({ id, idempotency_key: custom_id, status }, { isForged }) {
        const isPaid = status === 'paid';
        const event_type = isPaid ? 'PAYMENT.CAPTURE.COMPLETED' : 'CHECKOUT.ORDER.APPROVED';
        const named = { custom_id, invoice_id: custom_id };
        const resource = isPaid ? named : { id, purchase_units: [named] };
        const event = { id: `WH-${id}-${Math.random().toString(36).slice(2)}`, event_type, resource };
        return fake.notify(event, isForged ? { webhookId: '0FORGED0000000000' } : {});
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

type Order =
  Awaited<ReturnType<typeof startFakePayPal>>['ledger']['orders'] extends Map<string, infer One>
    ? One
    : never;

/** Returns the entries of an order and of the completion that captured its money. */
function linesOf({ id, unit, captures, refunds, status }: Order): LedgerLine[] {
  const units = (amount: Order['unit']['amount']) =>
    Number(parseMoney(amount.value, amount.currency_code)?.minorUnits);
  const sum = (list: readonly { amount: Order['unit']['amount'] }[]) =>
    list.reduce((total, { amount }) => total + units(amount), 0);
  const order = {
    id,
    idempotency_key: String(unit.custom_id),
    kind: 'wallet_order',
    acquirer: 'ONE',
    status,
    amount: units(unit.amount),
    currency: unit.amount.currency_code,
    amount_captured: sum(captures),
    amount_refunded: sum(refunds),
    response_code: null,
    reference: null,
  };
  const completions = captures.map((capture) => ({
    ...order,
    id: capture.id,
    idempotency_key: `${unit.custom_id}:capture`,
    kind: 'completion',
    status: 'succeeded',
  }));
  return [order, ...completions];
}
