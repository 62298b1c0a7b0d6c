import { randomUUID } from 'node:crypto';
import { create, type JsonObject } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import type { HttpResult } from '#src/connectors/kit/http-client.ts';
import type { WalletEnrollment } from '#src/connectors/port/enrollment.ts';
import { agreementRequest, fromAgreement, fromAgreementLookUp } from '#src/connectors/sandbox/agreements.ts';
import { readSettings } from '#src/connectors/sandbox/settings.ts';
import { Secret } from '#src/secret.ts';
import { ID } from './answers.ts';

const SECRETS = { api_key: new Secret('sandbox_key'), notification_secret: new Secret('n'.repeat(16)) };
const ENROLLMENT = randomUUID();
const TOKEN = `wt_${ID}`;
const URL_TO_AGREE = `https://provider.example/agreement/wa_${ID}`;

const REQUEST: WalletEnrollment = {
  enrollmentId: ENROLLMENT,
  type: 'WALLET_C',
  country: 'CO',
  customerPayer: create(CustomerPayerSchema),
  returnUrl: 'https://payments.example/v1/enrollments/1/return',
  notificationUrl: 'https://payments.example/v1/providers/one/notifications',
  expiresAtMs: Date.UTC(2030, 0, 1),
};

const answer = (change: JsonObject, status = 201): HttpResult => ({
  kind: 'answer',
  status,
  headers: {},
  body: Buffer.from(
    JSON.stringify({
      ...{ object: 'wallet_agreement', id: `wa_${ID}`, idempotency_key: ENROLLMENT, status: 'created' },
      ...{ amount: 0, currency: '', agreement_url: URL_TO_AGREE, wallet_token: null, ...change },
    }),
  ),
});
const opened = (change: JsonObject, status?: number) =>
  fromAgreement(answer(change, status), ENROLLMENT, 'SANDBOX');

it('an agreement is requested with a URL for notifications only if these can be verified', () => {
  const settings = { base_url: 'http://127.0.0.1:8080' };
  const verifiable = readSettings(settings, SECRETS);
  const bodyOf = (over: Partial<WalletEnrollment>, as = verifiable) =>
    JSON.parse(agreementRequest({ ...REQUEST, ...over }, as).body ?? '');
  const told = { wallet: 'WALLET_C', payer: {}, return_url: REQUEST.returnUrl };
  const all = { ...told, country: 'CO', expires_at: '2030-01-01T00:00:00.000Z' };
  expect(bodyOf({})).toEqual({ ...all, notification_url: REQUEST.notificationUrl });
  expect(bodyOf({ notificationUrl: '' })).toEqual(all);
  expect(bodyOf({}, readSettings(settings, { api_key: SECRETS.api_key }))).toEqual(all);
  expect(bodyOf({ country: '' })).not.toHaveProperty('country');
});

it.each([
  ['created', {}, { kind: 'awaits_payer', show: { page: URL_TO_AGREE } }],
  ['agreed', { wallet_token: TOKEN }, { kind: 'approved', enrolledToken: TOKEN }],
  ['declined', {}, { kind: 'declined', iso8583Code: '05' }],
  ['canceled', {}, { kind: 'declined', iso8583Code: '17' }],
  ['expired', {}, { kind: 'expired' }],
])('an agreement that is %s is read as such in every response', (status, change, outcome) => {
  expect(opened({ status, ...change })).toMatchObject(outcome);
  const lookedUp = fromAgreementLookUp(answer({ status, ...change }, 200), ENROLLMENT, 'SANDBOX');
  expect(lookedUp).toMatchObject(outcome);
});

it.each<[string, JsonObject]>([
  ['of another enrollment', { idempotency_key: randomUUID() }],
  ['of another kind', { object: 'wallet_order' }],
  ['agreed to, without a token', { status: 'agreed' }],
  ['agreed to, with a token of another form', { status: 'agreed', wallet_token: '4111111111111111' }],
  ['open, without a web address', { agreement_url: 'javascript:alert(1)' }],
  ['in an unknown state', { status: 'paid' }],
])('an enrollment response %s leaves the outcome unknown', (_name, change) => {
  expect(opened(change).kind).toBe('unknown');
});

it('an error in the provider’s own form means that no enrollment was opened', () => {
  expect(opened({ error: { type: 'invalid_request', message: 'no' } }, 400).kind).toBe('not_sent');
  expect(fromAgreement({ kind: 'unknown', detail: 'timeout' }, ENROLLMENT, 'SANDBOX').kind).toBe('unknown');
});

it('an enrollment that the provider has not received stays open', () => {
  const unknown = answer({ error: { type: 'not_found', message: 'nothing' } }, 404);
  expect(fromAgreementLookUp(unknown, ENROLLMENT, 'SANDBOX').kind).toBe('unknown');
});
