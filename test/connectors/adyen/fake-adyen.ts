import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import type { JsonObject } from '@bufbuild/protobuf';
import { startSite } from '../../support/site.ts';
import { codeRulesOf, lackOfCode, PSE_BANKS } from './fake-codes.ts';
import { FAKE_ACCOUNT, type Item, notificationOf } from './fake-notifications.ts';
import { cardBehind, readWallet } from './fake-wallets.ts';

/**
 * A stateful fake of the parts of Adyen's Checkout API that tests need, written from its documentation: one merchant
 * account.
 */
export type FakeAdyen = {
  readonly url: string;
  readonly payments: ReadonlyMap<string, FakePayment>;
  /** Every request to /v72, in order. */
  readonly requests: readonly { path: string; key: string | undefined; body: JsonObject }[];
  /** Notifications that await delivery, as Adyen would post them. */
  readonly notifications: string[];
  /** Sets the fault of the next request. */
  next(fault: Fault): void;
  /**
   * The payer acts on the page they were sent to.
   *
   * @returns the query string of their return.
   */
  payAt(redirectUrl: string, succeeds: boolean): string;
  /**
   * Something happens to a local method's code, or to a payment at a bank: it is paid, the bank refuses it, or the offer
   * ends unpaid. A paid one can be paid no more; the others can, since banks are late.
   */
  happens(reference: string, what: 'paid' | 'refused' | 'expired' | 'closed'): void;
  /** Lets days pass: the fake forgets idempotency keys after seven. */
  later(days: number): void;
  close(): void;
};

/** A payment in the fake's books. */
export type FakePayment = {
  readonly pspReference: string;
  readonly reference: string;
  readonly amount: { value: number; currency: string };
  readonly returnUrl: string;
  /** Adyen's name of the method. */
  readonly method: string;
  /** The day on which it was paid. */
  paidOn: number;
  /**
   * `authenticated`: the payer returned from a challenge; the details come next. `presented`: the payer has a code.
   */
  state:
    | 'authorised'
    | 'refused'
    | 'redirected'
    | 'challenged'
    | 'authenticated'
    | 'cancelled'
    | 'presented'
    | 'expired';
  captured: number;
  refunded: number;
};

/**
 * - `lost_answer`: the request is processed, and the connection ends without a response.
 * - `silent`: the request is processed, and no response comes.
 * - `lost_request`: the connection ends before anything is processed.
 * - `transient`: 500 with `transient-error: true`; nothing is processed.
 * - `error`: 500, stored as the key's response.
 * - `in_progress`: 422 with 704, as for a key whose first request is still in progress.
 */
export type Fault = 'lost_answer' | 'silent' | 'lost_request' | 'transient' | 'error' | 'in_progress';

export const FAKE_API_KEY = 'AQE_fake_adyen_key';

const KEY_DAYS = 7;
/** Days after which Pix can no longer be refunded. */
const PIX_REFUND_DAYS = 90;
const WALLETS: ReadonlySet<string> = new Set(['applepay', 'googlepay']);
const REFUSALS: Readonly<Record<string, readonly [code: string, reason: string, advice?: string]>> = {
  DECLINED: ['2', 'Refused', '03 : Do not try again'],
  REFERRAL: ['3', 'Referral'],
  ERROR: ['4', 'Acquirer Error'],
  BLOCK_CARD: ['5', 'Blocked Card'],
  CARD_EXPIRED: ['6', 'Expired Card'],
  INVALID_AMOUNT: ['7', 'Invalid Amount'],
  NOT_ENOUGH_BALANCE: ['12', 'Not enough balance'],
};

type Answer = { status: number; body: JsonObject; headers?: Record<string, string> };

/** Starts the fake on a free loopback port. */
export async function startFakeAdyen(): Promise<FakeAdyen> {
  const payments = new Map<string, FakePayment>();
  const kept = new Map<string, { answer: Answer; day: number }>();
  const requests: { path: string; key: string | undefined; body: JsonObject }[] = [];
  const notifications: string[] = [];
  const faults: Fault[] = [];
  let today = 0;

  function notify(item: Item, amount: FakePayment['amount'], more: object = {}, data: object = {}): void {
    notifications.push(notificationOf(item, amount, more, { data }));
  }

  function pay(body: JsonObject): Answer {
    const missing = ['amount', 'merchantAccount', 'paymentMethod', 'reference', 'returnUrl'].find(
      (name) => !body[name],
    );
    const code = missing === 'reference' ? '130' : '000';
    if (missing) return refusal(422, code, `Required field '${missing}' is not provided.`);
    const method = body.paymentMethod as Record<string, string>;
    const amount = body.amount as FakePayment['amount'];
    const payment: FakePayment = {
      pspReference: pspReference(),
      reference: String(body.reference),
      returnUrl: String(body.returnUrl),
      amount,
      method: String(method.type),
      paidOn: today,
      state: 'authorised',
      captured: 0,
      refunded: 0,
    };
    const authentication = body.authenticationData as JsonObject | undefined;
    const isChallenged = body.browserInfo && authentication?.attemptAuthentication === 'always';
    const lack = lackOfCode(payment.method, body, amount);
    if (lack) return refusal(422, '130', `Required field '${lack}' is not provided.`);
    const rules = codeRulesOf(payment.method);
    if (rules) return present(payment, rules.answer(body, amount));
    const isWallet = WALLETS.has(payment.method);
    const wallet = isWallet ? readWallet(method) : undefined;
    if (isWallet && wallet === undefined) return refusal(422, '14_0', 'Invalid token');
    if ((method.type !== 'scheme' && !isWallet) || isChallenged) {
      payment.state = isChallenged ? 'challenged' : 'redirected';
      payments.set(payment.pspReference, payment);
      const action = { type: 'redirect', method: 'GET', paymentMethodType: String(method.type) };
      const url = `${site.url}/hpp/${payment.pspReference}`;
      return { status: 200, body: { resultCode: 'RedirectShopper', action: { ...action, url } } };
    }
    if (!isWallet && !/^\d{12,19}$/.test(method.number ?? ''))
      return refusal(422, '101', 'Invalid card number');
    if (!/^\d{3,4}$/.test(method.cvc ?? '000')) return refusal(422, '103', 'CVC is not the right length');
    payments.set(payment.pspReference, payment);
    const { pspReference: psp, reference } = payment;
    const common = { pspReference: psp, merchantReference: reference, amount: { ...amount } };
    const refused = REFUSALS[wallet ?? method.holderName ?? ''];
    if (refused) {
      payment.state = 'refused';
      const [refusalReasonCode, refusalReason, merchantAdviceCode] = refused;
      notify({ eventCode: 'AUTHORISATION', success: false, psp, reference }, amount, {
        reason: refusalReason,
      });
      const resultCode = refusalReasonCode === '4' ? 'Error' : 'Refused';
      const reason = { resultCode, refusalReason, refusalReasonCode, additionalData: { merchantAdviceCode } };
      return { status: 200, body: { ...common, ...reason } as JsonObject };
    }
    const isManual = (body.additionalData as JsonObject | undefined)?.manualCapture === 'true';
    if (!isManual) payment.captured = amount.value;
    const additionalData = { authCode: '033899', ...(isWallet && cardBehind(payment.method)) };
    notify({ eventCode: 'AUTHORISATION', success: true, psp, reference }, amount, {}, additionalData);
    return {
      status: 200,
      body: { ...common, resultCode: 'Authorised', additionalData },
    };
  }

  /** Gives the payer a code. */
  function present(payment: FakePayment, answer: JsonObject): Answer {
    payment.state = 'presented';
    payments.set(payment.pspReference, payment);
    const { pspReference: psp, reference } = payment;
    const made = { eventCode: 'PENDING', success: true, psp, reference };
    notify(made, payment.amount, { paymentMethod: payment.method });
    return { status: 200, body: { pspReference: psp, merchantReference: reference, ...answer } };
  }

  function happens(reference: string, what: Parameters<FakeAdyen['happens']>[1]): void {
    const payment = [...payments.values()].find((one) => one.reference === reference);
    if (!payment || payment.state === 'authorised') throw new Error('nothing can happen to this payment');
    const { pspReference: psp, amount, method: paymentMethod } = payment;
    const reason = what === 'expired' ? 'Expired' : what === 'refused' ? 'Refused by the bank' : '';
    const success = what === 'paid' || what === 'closed';
    payment.state = what === 'paid' ? 'authorised' : what === 'refused' ? 'refused' : 'expired';
    if (what === 'paid') Object.assign(payment, { captured: amount.value, paidOn: today });
    const eventCode = what === 'closed' ? 'OFFER_CLOSED' : 'AUTHORISATION';
    notify({ eventCode, success, psp, reference }, amount, { paymentMethod, reason });
  }

  /** Completes a challenge, once, with the data from the payer's browser. */
  function details(body: JsonObject): Answer {
    const { redirectResult } = (body.details ?? {}) as JsonObject;
    const payment = payments.get(/^result-(\w+)$/.exec(String(redirectResult))?.[1] ?? '');
    if (!payment || payment.state === 'challenged') {
      return refusal(422, '101', 'Invalid redirectResult');
    }
    const { pspReference: psp, reference, amount } = payment;
    const common = { pspReference: psp, merchantReference: reference, amount: { ...amount } };
    const isPaid = payment.state === 'authenticated' || payment.state === 'authorised';
    if (payment.state === 'authenticated') {
      payment.state = 'authorised';
      payment.captured = amount.value;
      notify({ eventCode: 'AUTHORISATION', success: true, psp, reference }, amount);
    }
    const refused = { refusalReasonCode: '11', refusalReason: '3D Not Authenticated' };
    const resultCode = isPaid ? 'Authorised' : 'Refused';
    return { status: 200, body: { ...common, resultCode, ...(!isPaid && refused) } };
  }

  /** Cancels the payment with the merchant's reference; a notification reports the outcome. */
  function technicalCancel(body: JsonObject): Answer {
    const paymentReference = String(body.paymentReference);
    const payment = [...payments.values()].find(({ reference }) => reference === paymentReference);
    const psp = pspReference();
    const success = payment !== undefined && apply(payment, 'cancels', 0);
    notify(
      { eventCode: 'TECHNICAL_CANCEL', success, psp, reference: paymentReference },
      payment?.amount ?? { value: 0, currency: 'USD' },
    );
    return {
      status: 201,
      body: { merchantAccount: FAKE_ACCOUNT, paymentReference, pspReference: psp, status: 'received' },
    };
  }

  function modify(psp: string, kind: string, body: JsonObject): Answer {
    const payment = payments.get(psp);
    if (!payment) return refusal(422, '167', 'Original pspReference required for this operation');
    const own = pspReference();
    const amount = (body.amount as FakePayment['amount'] | undefined) ?? payment.amount;
    const isRefused = kind === 'refunds' && !isRefundable(payment, today);
    const succeeds = !isRefused && apply(payment, kind, amount.value);
    const eventCode = { captures: 'CAPTURE', cancels: 'CANCELLATION', refunds: 'REFUND' }[kind] ?? '';
    notify(
      { eventCode, success: succeeds, psp: own, original: psp, reference: String(body.reference) },
      amount,
    );
    return {
      status: 201,
      body: {
        merchantAccount: FAKE_ACCOUNT,
        paymentPspReference: psp,
        pspReference: own,
        reference: String(body.reference),
        status: 'received',
        ...(kind !== 'cancels' && { amount: { ...amount } }),
      },
    };
  }

  function process(path: string, body: JsonObject): Answer {
    if (path === '/v72/payments/details') return details(body);
    if (body.merchantAccount !== FAKE_ACCOUNT) return refusal(403, '901', 'Invalid Merchant Account');
    if (path === '/v72/paymentMethods') return { status: 200, body: { paymentMethods: methodsFor(body) } };
    if (path === '/v72/payments') return pay(body);
    if (path === '/v72/cancels') return technicalCancel(body);
    const [, psp = '', kind = ''] = /^\/v72\/payments\/([^/]+)\/(captures|cancels|refunds)$/.exec(path) ?? [];
    return kind ? modify(psp, kind, body) : refusal(404, '000', 'No such resource');
  }

  function answer(
    path: string,
    key: string | undefined,
    apiKey: unknown,
    body: JsonObject,
  ): Answer | undefined | 'none' {
    const fault = faults.shift();
    if (fault === 'lost_request') return undefined;
    if (apiKey !== FAKE_API_KEY)
      return refusal(401, '000', 'HTTP Status Response - Unauthorized', 'security');
    if (key !== undefined && key.length > 64) return refusal(422, '000', 'The idempotency key is too long');
    if (fault === 'in_progress') return refusal(422, '704', 'request already processed or in progress');
    if (fault === 'transient') {
      return { ...refusal(500, '905', 'Try again', 'internal'), headers: { 'transient-error': 'true' } };
    }
    const first = key === undefined ? undefined : kept.get(key);
    const isKnown = first !== undefined && today - first.day < KEY_DAYS;
    const made = isKnown
      ? first.answer
      : fault === 'error'
        ? refusal(500, '000', 'x', 'internal')
        : process(path, body);
    if (key !== undefined && !isKnown) kept.set(key, { answer: made, day: today });
    if (fault === 'silent') return 'none';
    if (fault === 'lost_answer') return undefined;
    return key === undefined ? made : { ...made, headers: { 'idempotency-key': key } };
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = JSON.parse((await text(request)) || '{}') as JsonObject;
    const path = request.url ?? '';
    const key = request.headers['idempotency-key'] as string | undefined;
    requests.push({ path, key, body });
    const made = answer(path, key, request.headers['x-api-key'], body);
    if (made === 'none') return;
    if (!made) {
      request.socket.destroy();
      return;
    }
    response.writeHead(made.status, { 'content-type': 'application/json', ...made.headers });
    response.end(JSON.stringify(made.body));
  }

  const site = await startSite((request, response) => void serve(request, response));

  return {
    url: site.url,
    payments,
    requests,
    notifications,
    next: (fault) => faults.push(fault),
    payAt(redirectUrl, succeeds) {
      const payment = payments.get(redirectUrl.split('/').at(-1) ?? '');
      if (payment?.state === 'challenged') {
        payment.state = succeeds ? 'authenticated' : 'refused';
        return `redirectResult=result-${payment.pspReference}`;
      }
      if (payment?.state !== 'redirected') throw new Error('this page has nothing to pay');
      payment.state = succeeds ? 'authorised' : 'refused';
      if (succeeds) payment.captured = payment.amount.value;
      const { pspReference: psp, reference, amount } = payment;
      notify({ eventCode: 'AUTHORISATION', success: succeeds, psp, reference }, amount);
      return `redirectResult=result-${psp}`;
    },
    happens,
    later: (days) => {
      today += days;
    },
    close: site.close,
  };
}

/** Returns the account's payment methods, with the banks of PSE if they are asked for. */
function methodsFor({ countryCode, allowedPaymentMethods: allowed }: JsonObject): JsonObject[] {
  const all = [
    { type: 'scheme' },
    ...(countryCode === 'CO' ? [{ type: 'pse_payulatam', issuers: PSE_BANKS }] : []),
  ];
  return Array.isArray(allowed) ? all.filter(({ type }) => allowed.includes(type)) : all;
}

/** Vouchers cannot be refunded, and Pix only for a time. */
function isRefundable({ method, paidOn }: FakePayment, today: number): boolean {
  if (method === 'pix') return today - paidOn <= PIX_REFUND_DAYS;
  return codeRulesOf(method)?.isRefundable !== false;
}

/** Applies a modification to a payment. @returns whether it succeeds, as its notification reports. */
function apply(payment: FakePayment, kind: string, value: number): boolean {
  const isOpen = payment.state === 'authorised' && payment.captured === 0;
  if (kind === 'captures') {
    if (!isOpen || value > payment.amount.value) return false;
    payment.captured = value;
    return true;
  }
  if (kind === 'cancels') {
    if (isOpen) payment.state = 'cancelled';
    return isOpen;
  }
  if (value > payment.captured - payment.refunded) return false;
  payment.refunded += value;
  return true;
}

function refusal(status: number, errorCode: string, message: string, errorType = 'validation'): Answer {
  return { status, body: { status, errorCode, message, errorType } };
}

/** Sixteen letters and digits, which never look like a card number: those are removed from what is shown. */
function pspReference(): string {
  return `${randomBytes(4).toString('hex')}F${randomBytes(4).toString('hex').slice(1)}`.toUpperCase();
}
