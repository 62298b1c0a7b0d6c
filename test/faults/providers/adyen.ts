import { setTimeout as sleep } from 'node:timers/promises';
import { isLocalAtAdyen } from '#src/connectors/adyen/methods.ts';
import { FAKE_API_KEY, type FakePayment, startFakeAdyen } from '../../connectors/adyen/fake-adyen.ts';
import { FAKE_ACCOUNT, FAKE_HMAC_KEY, notificationOf } from '../../connectors/adyen/fake-notifications.ts';
import { DECLINED_AT_ACQUIRER_ONE } from '../orders.ts';
import { type Dialect, type FrontRequest, startFront } from './front.ts';
import type { Judge, LedgerLine, Provider } from './provider.ts';

const KEY_OF_TWO = `${FAKE_API_KEY}_two`;
const DELIVERY_MS = 40;
const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/;

/** Adyen's fake, which sends notifications about all events by itself. Its codes are Brazilian. */
export const adyen: Provider = {
  name: 'adyen',
  abilities: new Set([
    'cards',
    'authorizations',
    'verifications',
    'redirects',
    'late_payers',
    'codes',
    'late_codes',
    // It has no look-ups, so that a key whose sender died is answered at the first check.
    'lost_charges',
  ]),
  connector: 'adyen',
  timeoutMs: 1_500,
  settings: () => `merchant_account: ${FAKE_ACCOUNT}, redirect_methods: { WALLET_B: ideal, WALLET_D: ideal }`,
  secrets: (acquirer) => ({ api_key: `FAULTS_KEY_${acquirer}`, hmac_key: 'FAULTS_SECRET' }),
  environment: { FAULTS_KEY_ONE: FAKE_API_KEY, FAULTS_KEY_TWO: KEY_OF_TWO, FAULTS_SECRET: FAKE_HMAC_KEY },
  currencies: [
    { currency: 'USD', digits: 2 },
    { currency: 'JPY', digits: 0 },
    { currency: 'KWD', digits: 3 },
    { currency: 'BRL', digits: 2 },
  ],
  callOf(head) {
    if (/^POST \/v72\/payments /.test(head)) return 'charge';
    if (/^POST \/v72\/payments\/(details|\w+\/(captures|cancels|refunds)) /.test(head)) return 'operation';
    return /^POST \/v72\/cancels /.test(head) ? 'close' : undefined;
  },
  async start({ deliver }): Promise<Judge> {
    const fake = await startFakeAdyen();
    /** The requests that were carried out, keyed by our transaction id. */
    const heard = new Map<string, FrontRequest>();
    const front = await startFront(fake.url, {
      ...DIALECT,
      heard(request) {
        const id = UUID.exec(String(JSON.parse(request.body).reference))?.[0];
        if (id !== undefined && !heard.has(id)) heard.set(id, request);
      },
    });
    let isAlive = true;
    const lines = () =>
      [...fake.payments.values()].map((payment) => lineOf(payment, heard.get(payment.reference)));
    const delivering = (async () => {
      while (isAlive) {
        const [first] = fake.notifications;
        const told = first && (await deliver(connectionOf(first, lines()), asNotification(first)));
        // A notification that was not accepted is sent again.
        if (told === 200) fake.notifications.shift();
        await sleep(DELIVERY_MS);
      }
    })();
    return {
      port: front.port,
      isAlive: () => isAlive,
      written: async () => '',
      ledger: async () => lines(),
      async agree({ id, kind, idempotency_key: reference }) {
        if (kind !== 'code' || fake.payments.get(id)?.state === 'redirected')
          return fake.payAt(`/hpp/${id}`, true);
        fake.happens(reference, 'paid');
        return '';
      },
      async expire({ idempotency_key: reference }) {
        fake.happens(reference, 'closed');
      },
      notification({ id, idempotency_key: reference, amount: value, currency }, { isForged }) {
        const item = { eventCode: 'AUTHORISATION', success: true, psp: id, reference };
        const key = isForged ? 'F'.repeat(64) : FAKE_HMAC_KEY;
        return asNotification(notificationOf(item, { value, currency }, {}, { hmacKey: key }));
      },
      trouble: front.trouble,
      hasHeardOf: (transactionId) => heard.has(transactionId),
      async kill() {
        isAlive = false;
        await Promise.all([delivering, front.close(), fake.close()]);
      },
    };
  },
};

const DIALECT: Dialect = {
  callOf: adyen.callOf,
  keyHeader: 'idempotency-key',
  account: (headers) => ({
    acquirer: headers['x-api-key'] === KEY_OF_TWO ? 'TWO' : 'ONE',
    headers: { ...headers, 'x-api-key': FAKE_API_KEY },
  }),
  changed: (request) =>
    request.acquirer === 'ONE' && request.body.includes(DECLINED_AT_ACQUIRER_ONE)
      ? withHolder(request, 'NOT_ENOUGH_BALANCE')
      : request,
  /** Declines with Adyen's result and the issuer's raw code. */
  async decline(request, code, ask) {
    const answer = await ask(withHolder(request, 'DECLINED'));
    const additionalData = { refusalReasonRaw: `${code} : Refused` };
    return { ...answer, body: JSON.stringify({ ...JSON.parse(answer.body), additionalData }) };
  },
};

/** Sets the holder name that determines the result in Adyen's test system. */
function withHolder(request: FrontRequest, holderName: string): FrontRequest {
  const body = JSON.parse(request.body);
  body.paymentMethod.holderName = holderName;
  return { ...request, body: JSON.stringify(body) };
}

/** Returns the connection of the payment in a notification. */
function connectionOf(notification: string, lines: readonly LedgerLine[]): string {
  const [{ NotificationRequestItem: item }] = JSON.parse(notification).notificationItems;
  const line = lines.find(
    ({ id, idempotency_key }) =>
      id === (item.originalReference ?? item.pspReference) || idempotency_key === item.merchantReference,
  );
  return line?.acquirer === 'TWO' ? 'judge-two' : 'judge';
}

function asNotification(text: string) {
  return { header: () => undefined, query: '', body: Buffer.from(text) };
}

/** The states of a code's entry. */
const CODE_STATES: Readonly<Record<string, string>> = {
  ...{ presented: 'created', redirected: 'created', authorised: 'paid', refused: 'declined' },
};

function lineOf(payment: FakePayment, request: FrontRequest | undefined): LedgerLine {
  const { pspReference, reference, amount, state, captured, refunded, method } = payment;
  const isCode = isLocalAtAdyen(method);
  const isCard = method === 'scheme' || method === 'applepay' || method === 'googlepay';
  const isAuthorized = state === 'authorised' || state === 'cancelled';
  return {
    id: pspReference,
    idempotency_key: reference,
    kind: isCode ? 'code' : isCard ? 'charge' : 'wallet_order',
    acquirer: request?.acquirer ?? 'ONE',
    status: isCode ? (CODE_STATES[state] ?? state) : isAuthorized ? 'approved' : state,
    amount: amount.value,
    currency: amount.currency,
    amount_captured: captured,
    amount_refunded: refunded,
    response_code: isAuthorized && !isCode ? '00' : null,
    reference: null,
  };
}
