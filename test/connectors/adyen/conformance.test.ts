import type { JsonObject } from '@bufbuild/protobuf';
import { adyenConnector } from '#src/connectors/adyen/connector.ts';
import type { PaymentAttempt } from '#src/connectors/port/attempt.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { cardAttempt, lookUpOf, lookUpOfOperation, operationOn, redirectAttempt } from '../attempts.ts';
import { describeConformance } from '../conformance.ts';
import type { ConformingCall } from '../conformance-calls.ts';
import { answer, type ConformingAnswer, changed, row } from '../conforming-answers.ts';
import { codeAttempt, connectAdyen, read, SECRETS, subjectOf } from './adyen-under-test.ts';
import { errorOf as error, LOCAL_METHODS, WALLET_TOKENS } from './conforming-codes.ts';
import { FAKE_ACCOUNT, notificationOf } from './fake-notifications.ts';

const PSP = 'NC6HT9CRT65ZGN82';
const pixAttempt = () => codeAttempt('PIX');
const operation = operationOn(cardAttempt(), PSP);
const amount = { currency: operation.money.currency, value: Number(operation.money.minorUnits) };

/** Reads Adyen's events about a transaction. */
const reported = (reference: string) => async (eventCode: string) => {
  const connection = connectAdyen();
  const reading = await read(
    connection,
    notificationOf({ eventCode, success: true, psp: PSP, reference }, amount),
  );
  await connection.close();
  const [subject] = reading.kind === 'about' ? reading.subjects : [];
  return subject?.signed?.outcome ?? Promise.reject(new Error(reading.kind));
};

describeConformance({
  connector: adyenConnector,
  settings: (baseUrl, timeoutMs) => ({
    base_url: baseUrl,
    timeout_ms: timeoutMs,
    merchant_account: FAKE_ACCOUNT,
    redirect_methods: { WALLET_B: 'ideal' },
  }),
  secrets: SECRETS,
  attempt: cardAttempt,
  approval: (attempt) => ({ status: 200, body: approval(attempt) }),
  corrections: {
    payment: reported(operation.payment.transactionId),
    capture: reported(`capture-${operation.transactionId}`),
    refund: reported(`refund-${operation.transactionId}`),
  },
  probeAnswer: { status: 200, body: { paymentMethods: [{ type: 'scheme', name: 'Cards' }] } },
  accounts: [
    {
      ...{ name: 'its payment methods', status: 200, body: { paymentMethods: [] } },
      report: { result: 'ACCEPTED', account: FAKE_ACCOUNT, environment: undefined },
    },
    {
      ...{ name: 'a refusal of the credentials', status: 401, body: error(401, '000') },
      report: { result: 'REFUSED', detail: 'the credentials are refused (HTTP 401)' },
    },
    {
      ...{ name: 'an error about the request', status: 404, body: error(404, '000') },
      report: { result: 'NOT_TESTABLE', detail: 'the response is not the expected one (HTTP 404)' },
    },
  ],
  calls: [
    made('capture', { amount }),
    made('cancel', {}),
    made('refund', { amount }),
    repeated('capture', { amount }),
    repeated('cancel', {}),
    repeated('refund', { amount }),
    completed(),
  ],
  localMethods: LOCAL_METHODS,
  walletTokens: WALLET_TOKENS,
  secondCharge: {
    recorded: PSP,
    async report(connection) {
      const item = { eventCode: 'AUTHORISATION', success: true, psp: 'QFQTPCQ8HXSKGK82' };
      const body = notificationOf({ ...item, reference: operation.payment.transactionId }, amount);
      return subjectOf(await read(connection, body)).signed?.outcome;
    },
    answer: () => ({}),
  },
  answers: [
    changed('approved', 'an approval', {}),
    changed('approved', 'an approval that repeats neither amount nor reference', {
      amount: undefined,
      merchantReference: undefined,
    }),
    refused('Refused', '2'),
    refused('Cancelled', '15'),
    refused('Error', '4'),
    refused('Refused', '9999'),
    changed('declined', 'a challenge without a page', { resultCode: 'RedirectShopper' }),
    changed('awaits_payer', 'a challenge', {
      resultCode: 'RedirectShopper',
      action: { type: 'redirect', method: 'GET', url: 'https://bank.example/3ds' },
    }),
    changed('declined', 'an authentication that was not requested', { resultCode: 'IdentifyShopper' }),
    changed('pending', 'a payment in process', { resultCode: 'Pending' }),
    changed('pending', 'a payment that was received', { resultCode: 'Received' }),
    changed('unknown', 'part of the amount', { resultCode: 'PartiallyAuthorised' }),
    changed('unknown', 'an unknown result', { resultCode: 'Approved' }),
    changed('unknown', 'no result', { resultCode: undefined }),
    changed('unknown', 'an approval without a pspReference', { pspReference: undefined }),
    changed('unknown', 'another reference', {
      merchantReference: '00000000-0000-4000-8000-000000000000',
    }),
    changed('unknown', 'another amount', { amount: { currency: 'USD', value: 1 } }),
    changed('unknown', 'another currency', { amount: { currency: 'EUR', value: 300_000 } }),
    changed('unknown', 'an amount of the wrong type', { amount: '3000.00' }),
    ...[400, 401, 403, 422, 429].map((status) =>
      row('not_sent', `a refusal with ${status}`, error(status, '130'), status),
    ),
    row('not_sent', 'a refusal with 500 for a malformed field', error(500, '702'), 500),
    row('unknown', 'an internal error', { ...error(500, '905'), errorType: 'internal' }, 500),
    row('unknown', "a refusal not in Adyen's form", { message: 'proxy' }, 403),
    changed('unknown', 'an approval with 422', {}, 422),
    row('unknown', 'a 422 for a key already in use', error(422, '0704'), 422),
    row('unknown', 'a 409 for a key already in use', error(409, '704'), 409),
    ...['101', '0101', '102', '103', '129', '141', '153'].map((code) =>
      row('declined', `the card error ${code}`, error(422, code), 422),
    ),
    coded('pending', 'a code whose payment was received', { resultCode: 'Received' }),
    coded('pending', 'a code without its text', { action: { type: 'qrCode' } }),
    coded('pending', 'a voucher without anything to pay', { action: { type: 'voucher', reference: '' } }),
    coded('pending', 'a code of another kind', { action: { type: 'await', url: 'https://bank.example' } }),
    coded('declined', 'a code that is refused', { resultCode: 'Refused', refusalReasonCode: '2' }),
    coded('unknown', 'a code with a challenge', { resultCode: 'ChallengeShopper' }),
    redirected('awaits_payer', 'a redirect', { url: 'https://bank.example/pay' }),
    redirected('unknown', 'a redirect by POST', { url: 'https://bank.example/pay', method: 'POST' }),
    redirected('unknown', 'a redirect to a URL that is not an HTTP URL', { url: 'javascript:alert(1)' }),
  ],
});

function approval(attempt: PaymentAttempt): JsonObject {
  return {
    pspReference: PSP,
    resultCode: 'Authorised',
    merchantReference: attempt.transactionId,
    amount: { currency: attempt.money.currency, value: Number(attempt.money.minorUnits) },
    additionalData: { authCode: '033899' },
  };
}

function refused(resultCode: string, refusalReasonCode: string): ConformingAnswer {
  return changed('declined', `${resultCode} for ${refusalReasonCode}`, { resultCode, refusalReasonCode });
}

function coded(outcome: Outcome['kind'], name: string, more: JsonObject): ConformingAnswer {
  return {
    ...row(outcome, name, { pspReference: PSP, resultCode: 'Pending', ...more }),
    attempt: pixAttempt,
  };
}

function redirected(outcome: Outcome['kind'], name: string, action: JsonObject): ConformingAnswer {
  const body = { resultCode: 'RedirectShopper', action: { type: 'redirect', method: 'GET', ...action } };
  return { ...row(outcome, name, body), attempt: redirectAttempt };
}

function made(name: 'capture' | 'cancel' | 'refund', more: JsonObject): ConformingCall {
  const body: JsonObject = {
    merchantAccount: FAKE_ACCOUNT,
    paymentPspReference: PSP,
    pspReference: 'QFQTPCQ8HXSKGK82',
    reference: `${name}-${operation.transactionId}`,
    status: 'received',
    ...more,
  };
  const other = (field: string, value: string) =>
    answer('unknown', `another ${field}`, { ...body, [field]: value }, 201);
  return {
    name,
    make: (connection) => connection[name]?.(operation),
    key: operation.transactionId,
    approval: { status: 201, body },
    approvedAs: 'pending',
    answers: [
      other('merchantAccount', 'OtherECOM'),
      other('paymentPspReference', 'AAAAAAAAAAAAAAAA'),
      other('reference', operation.transactionId),
      other('status', 'done'),
      other('pspReference', ''),
      ...(name === 'cancel' ? [] : [other('amount', 'none')]),
      answer('not_sent', 'a refusal', error(422, '167'), 422),
      answer('not_sent', "a card's error", error(422, '101'), 422),
      answer('unknown', 'a repeat', error(422, '704'), 422),
    ],
  };
}

/** Repeats the operation. A refused repeat says nothing about the first request. */
function repeated(kind: 'capture' | 'cancel' | 'refund', more: JsonObject): ConformingCall {
  const first = made(kind, more);
  return {
    ...first,
    name: 'repeatOperation',
    of: kind,
    make: (connection) => connection.repeatOperation?.(lookUpOfOperation(kind, operation)),
    answers: first.answers.map((other) => ({ ...other, outcome: 'unknown' })),
  };
}

/** The details of a payer who returned from a challenge. */
function completed(): ConformingCall {
  const attempt = cardAttempt();
  const query = lookUpOf(attempt, { hint: { returnQuery: 'redirectResult=X6XtfGC3' } });
  const body = approval(attempt);
  const other = (outcome: Outcome['kind'], name: string, change: object) =>
    answer(outcome, name, { ...body, ...change });
  return {
    name: 'complete',
    make: (connection) => connection.complete?.(query),
    key: attempt.transactionId,
    approval: { status: 200, body },
    answers: [
      other('not_sent', 'another reference', { merchantReference: cardAttempt().transactionId }),
      other('unknown', 'no reference', { merchantReference: undefined }),
      other('unknown', 'another amount', { amount: { currency: 'USD', value: 1 } }),
      other('declined', 'a refusal by the bank', { resultCode: 'Refused', refusalReasonCode: '11' }),
      other('pending', 'a payment in process', { resultCode: 'Received' }),
      answer('not_sent', 'a refusal', error(422, '101'), 422),
    ],
  };
}
