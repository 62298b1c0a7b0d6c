import type { RawNotification } from '#src/connectors/port/connector.ts';
import { FAKE_API_KEY, FAKE_WEBHOOK_SECRET, startFakeStripe } from '../../connectors/stripe/fake-stripe.ts';
import { DECLINED_AT_ACQUIRER_ONE } from '../orders.ts';
import { type Dialect, startFront } from './front.ts';
import type { Acquirer, Judge, LedgerLine, Provider } from './provider.ts';

const KEY_OF_TWO = `${FAKE_API_KEY}_two`;
const INSUFFICIENT_FUNDS = '4000000000009995';

/** Stripe's decline codes by the scheme's code, or the one that forbids as much. The invalid X9 stands for a code that Stripe does not have. */
const DECLINES: Readonly<Record<string, string>> = {
  '04': 'pickup_card',
  '05': 'generic_decline',
  '12': 'do_not_try_again',
  '14': 'invalid_account',
  '41': 'lost_card',
  '43': 'stolen_card',
  '51': 'insufficient_funds',
  '54': 'expired_card',
  '59': 'fraudulent',
  '91': 'issuer_not_available',
  N7: 'incorrect_cvc',
  R1: 'revocation_of_authorization',
  X9: 'invented_decline',
};

/** Stripe's fake: cards, and codes that payers pay later. */
export const stripe: Provider = {
  name: 'stripe',
  abilities: new Set([
    'cards',
    'authorizations',
    'look_ups',
    'refund_reads',
    'payer_closings',
    'closings',
    'unsigned_notifications',
    'dashboard',
    'codes',
    'code_closings',
    'lost_charges',
    'lost_codes',
  ]),
  connector: 'stripe',
  timeoutMs: 2_500,
  settings: (acquirer) => `account_id: acct_${acquirer}`,
  secrets: (acquirer) => ({ api_key: `FAULTS_KEY_${acquirer}`, webhook_secret: 'FAULTS_SECRET' }),
  environment: {
    FAULTS_KEY_ONE: FAKE_API_KEY,
    FAULTS_KEY_TWO: KEY_OF_TWO,
    FAULTS_SECRET: FAKE_WEBHOOK_SECRET,
  },
  // Stripe requires multiples of ten for amounts in thousandths of a dinar.
  currencies: [
    { currency: 'USD', digits: 2 },
    { currency: 'JPY', digits: 0 },
    { currency: 'KWD', digits: 3, step: 10 },
  ],
  closesBy: 'close',
  challengedCard: '4000002760003184',
  callOf(head) {
    if (/^POST \/v1\/payment_intents\/\w+\/confirm /.test(head)) return 'charge';
    // The creation of a code is confirmed at once, that of a card's intent is not.
    if (/^POST \/v1\/payment_intents .*\bconfirm=true\b/s.test(head)) return 'charge';
    if (/^POST \/v1\/(refunds|payment_intents\/\w+\/capture) /.test(head)) return 'operation';
    // Closing a payment sends no key; a merchant's cancel has one.
    if (/^POST \/v1\/payment_intents\/\w+\/cancel /.test(head)) {
      return /idempotency-key/i.test(head) ? 'operation' : 'close';
    }
    if (/^POST \/v1\/payment_intents\/\w+ /.test(head)) return 'close';
    return /^GET \/v1\/(payment_intents|refunds)/.test(head) ? 'look_up' : undefined;
  },
  async start(): Promise<Judge> {
    const fake = await startFakeStripe();
    const acquirers = new Map<string, Acquirer>();
    for (const [code, declineCode] of Object.entries(DECLINES)) {
      fake.ledger.cards.set(cardDeclinedAs(code), { kind: 'decline', code: 'card_declined', declineCode });
    }
    const front = await startFront(fake.url, {
      ...DIALECT,
      heard({ acquirer, path }, { body }) {
        if (path === '/v1/payment_intents') acquirers.set(String(JSON.parse(body).id), acquirer);
      },
    });
    let isAlive = true;
    return {
      port: front.port,
      isAlive: () => isAlive,
      written: async () => '',
      ledger: async () => [...fake.ledger.intents.values()].map((intent) => lineOf(fake, intent, acquirers)),
      async agree({ id }) {
        if (isCode(fake, id)) fake.ledger.codes.pay(id);
        else fake.ledger.authenticate(id, true);
        return '';
      },
      async expire({ id }) {
        const { status } = fake.ledger.intents.get(id) ?? {};
        if (status !== 'requires_action') throw new Error(`the code is ${status}`);
        fake.ledger.codes.expire(id);
      },
      notification({ id }, { isForged }) {
        const intent = fake.ledger.intents.get(id) ?? {};
        const secrets = isForged ? ['whsec_forged'] : [FAKE_WEBHOOK_SECRET];
        return posted(fake.notification('payment_intent.succeeded', intent, {}, secrets));
      },
      refundThere({ id }, amount) {
        const { body } = fake.ledger.refund({ payment_intent: id, amount });
        return posted(fake.notification('refund.created', body));
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

function posted({ body, signature }: { body: string; signature: string }): RawNotification {
  const header = (name: string) => (name === 'stripe-signature' ? signature : undefined);
  return { header, query: '', body: Buffer.from(body) };
}

const DIALECT: Dialect = {
  callOf: stripe.callOf,
  keyHeader: 'idempotency-key',
  account: (headers) => ({
    acquirer: headers.authorization === `Bearer ${KEY_OF_TWO}` ? 'TWO' : 'ONE',
    headers: { ...headers, authorization: `Bearer ${FAKE_API_KEY}` },
  }),
  changed: (request) =>
    request.acquirer === 'ONE'
      ? { ...request, body: request.body.replace(DECLINED_AT_ACQUIRER_ONE, INSUFFICIENT_FUNDS) }
      : request,
  /** Confirms the intent with another payment method, whose card is declined with the code. */
  async decline(request, code, ask) {
    if (!request.path.endsWith('/confirm')) return ask(request);
    const body = `type=card&card[number]=${cardDeclinedAs(code)}&card[exp_month]=1&card[exp_year]=2031`;
    const { 'idempotency-key': _, ...headers } = request.headers;
    const made = await ask({ ...request, path: '/v1/payment_methods', headers, body });
    const method = `payment_method=${JSON.parse(made.body).id}`;
    return ask({ ...request, body: request.body.replace(/payment_method=[^&]+/, method) });
  },
};

function cardDeclinedAs(code: string): string {
  return `40000000000${[...code].map((letter) => letter.charCodeAt(0)).join('')}`;
}

type Fake = Awaited<ReturnType<typeof startFakeStripe>>;
type Intent = ReturnType<Fake['ledger']['intents']['get']> & {};

function isCode({ ledger }: Fake, id: string): boolean {
  return ledger.intents.get(id)?.code_type !== undefined;
}

/** Returns the state of a code. */
function stateOfCode({ status, last_payment_error: failure }: Intent): string {
  if (status === 'succeeded') return 'paid';
  if (failure) return 'expired';
  return status === 'canceled' ? 'canceled' : 'created';
}

function lineOf(fake: Fake, intent: Intent, acquirers: ReadonlyMap<string, Acquirer>): LedgerLine {
  const { ledger } = fake;
  const refunds = [...ledger.refunds.values()].filter((it) => it.payment_intent === intent.id);
  const isOfCode = isCode(fake, intent.id);
  const isAuthorized = !isOfCode && intent.authorized_at !== undefined;
  // Stripe lists the amount that a partial capture releases as a refund.
  const released = intent.status === 'succeeded' ? intent.amount - Number(intent.amount_received) : 0;
  return {
    id: intent.id,
    idempotency_key: String(intent.metadata.transaction_id),
    kind: isOfCode ? 'code' : 'charge',
    acquirer: acquirers.get(intent.id) ?? 'ONE',
    status: isOfCode ? stateOfCode(intent) : isAuthorized ? 'approved' : intent.status,
    amount: intent.amount,
    currency: intent.currency.toUpperCase(),
    amount_captured: Number(intent.amount_received),
    amount_refunded: refunds.reduce((sum, { amount }) => sum + Number(amount), -released),
    response_code: isAuthorized ? '00' : null,
    reference: null,
  };
}
