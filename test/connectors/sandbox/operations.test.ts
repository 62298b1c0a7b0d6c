import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PaymentAttempt } from '#src/connectors/port/attempt.ts';
import type { CaptureOperation, LookUp, ProviderConnection } from '#src/connectors/port/connector.ts';
import { type Outcome, payersPage } from '#src/connectors/port/outcome.ts';
import { sandboxConnector } from '#src/connectors/sandbox/connector.ts';
import { Secret } from '#src/secret.ts';
import {
  API_KEY,
  magic,
  type ProviderUnderTest,
  read,
  startProvider,
} from '../../sandbox/provider-under-test.ts';
import {
  cardAttempt,
  lookUpOf,
  lookUpOfOperation,
  operationOn,
  redirectAttempt,
  verificationAttempt,
} from '../attempts.ts';

let provider: ProviderUnderTest;
let connection: ProviderConnection;
/** Another connection, with a deadline that a test can wait for. */
let impatient: ProviderConnection;

beforeAll(async () => {
  provider = await startProvider({ publicUrl: (origin) => origin });
  const connect = (timeoutMs: number) =>
    sandboxConnector.connect(
      { base_url: provider.origin, timeout_ms: timeoutMs },
      { providerId: 'SANDBOX_ONE', secrets: { api_key: new Secret(API_KEY) } },
    );
  connection = connect(20_000);
  impatient = connect(2_000);
});
afterAll(async () => {
  await connection?.close();
  await impatient?.close();
  await provider?.close();
});

function authorization(over: Partial<PaymentAttempt> = {}): PaymentAttempt {
  return cardAttempt(undefined, over, { capture: false });
}

/** Pays, and returns the references by which operations name the payment. */
async function paid(attempt: PaymentAttempt): Promise<string> {
  const outcome = await connection.pay(attempt);
  expect(outcome).toMatchObject({ kind: 'approved', reference: expect.stringMatching(/^ch_/) });
  return 'reference' in outcome ? String(outcome.reference) : '';
}

const lookUp = (query: LookUp) => connection.lookUp?.(query) as Promise<Outcome>;
const lookUpOperation = (kind: 'capture' | 'cancel' | 'refund', operation: CaptureOperation, close = false) =>
  lookUp(lookUpOfOperation(kind, operation, { close }));
const part = (minorUnits: bigint) => ({ minorUnits, currency: 'USD' });

describe('operations at the sandbox provider', () => {
  it('an authorization is captured in parts and refunded in parts, by reference or by transaction', async () => {
    const attempt = authorization();
    const reference = await paid(attempt);
    const first = operationOn(attempt, reference, { money: part(100_000n) });
    const last = operationOn(attempt, undefined, { money: part(50_000n), isFinal: true });
    expect(await connection.capture?.(first)).toMatchObject({
      kind: 'approved',
      reference: expect.stringMatching(/^cp_/),
      providerData: { status: 'succeeded', rawResponse: { payment: reference } },
    });
    expect(await connection.capture?.(last)).toMatchObject({ kind: 'approved' });
    expect(
      await connection.refund?.(operationOn(attempt, reference, { money: part(150_001n) })),
    ).toMatchObject({
      kind: 'declined',
      iso8583Code: '61',
    });
    const refund = operationOn(attempt, reference, { money: part(150_000n) });
    expect(await connection.refund?.(refund)).toMatchObject({ kind: 'approved' });
    expect(await connection.refund?.(refund)).toMatchObject({ kind: 'approved' });
    expect(await read(provider.origin, `/v1/by-id/${reference}`)).toMatchObject({
      amount_captured: 150_000,
      amount_canceled: 150_000,
      amount_refunded: 150_000,
    });
    expect(await lookUpOperation('refund', refund)).toMatchObject({ kind: 'approved' });
    expect(await lookUp(lookUpOf(attempt))).toMatchObject({ kind: 'approved' });
  });

  it('an authorization is canceled, and its own look-up still says that it was approved', async () => {
    const attempt = authorization();
    const operation = operationOn(attempt, await paid(attempt));
    expect(await connection.cancel?.(operation)).toMatchObject({ kind: 'approved' });
    expect(await lookUpOperation('cancel', operation)).toMatchObject({ kind: 'approved' });
    expect(await lookUp(lookUpOf(attempt))).toMatchObject({ kind: 'approved' });
    expect(await connection.capture?.(operationOn(attempt, undefined))).toMatchObject({ kind: 'declined' });
  });

  it('a lapsed authorization is reported as expired', async () => {
    const attempt = authorization({ description: 'sandbox:expire_after:1' });
    await paid(attempt);
    await expect.poll(() => lookUp(lookUpOf(attempt))).toMatchObject({ kind: 'expired' });
  });

  it('a cancel that finds no authorized amount left is declined, and its look-up says so', async () => {
    const lapsed = authorization({ description: 'sandbox:expire_after:1' });
    const captured = authorization();
    for (const attempt of [lapsed, captured]) await paid(attempt);
    await connection.capture?.(operationOn(captured, undefined, { money: part(1n), isFinal: true }));
    await expect.poll(() => lookUp(lookUpOf(lapsed))).toMatchObject({ kind: 'expired' });
    for (const attempt of [lapsed, captured]) {
      const operation = operationOn(attempt, undefined);
      const declined = { kind: 'declined', iso8583Code: '57', providerData: { rawResponse: { amount: 0 } } };
      expect(await connection.cancel?.(operation)).toMatchObject(declined);
      expect(await lookUpOperation('cancel', operation)).toMatchObject(declined);
    }
  });

  it.each(['hang_after', 'reset_after', 'error_after', 'html'])(
    'the outcome of a refund that is made despite %s is unknown, then found',
    async (name) => {
      const attempt = cardAttempt();
      const operation = operationOn(attempt, await paid(attempt), { description: `sandbox:${name}` });
      const by = name === 'hang_after' ? impatient : connection;
      expect(await by.refund?.(operation)).toMatchObject({ kind: 'unknown' });
      expect(await lookUpOperation('refund', operation)).toMatchObject({ kind: 'approved' });
    },
  );

  it('a refund that the provider never receives has an unknown outcome, and is never made once it is closed', async () => {
    const attempt = cardAttempt();
    const operation = operationOn(attempt, await paid(attempt), { description: 'sandbox:reset_before' });
    expect(await connection.refund?.(operation)).toMatchObject({ kind: 'unknown' });
    expect(await lookUpOperation('refund', operation)).toMatchObject({ kind: 'unknown' });
    expect(await lookUpOperation('refund', operation, true)).toMatchObject({ kind: 'not_sent' });
    expect(await connection.refund?.({ ...operation, description: '' })).toMatchObject({ kind: 'unknown' });
    expect(await lookUpOperation('refund', operation)).toMatchObject({ kind: 'not_sent' });
  });

  it.each([
    ['sandbox:done_after:100', 'approved'],
    ['sandbox:fail_after:100', 'declined'],
  ])('a refund with %s is pending, then %s', async (description, kind) => {
    const attempt = cardAttempt();
    const operation = operationOn(attempt, await paid(attempt), { description });
    expect(await connection.refund?.(operation)).toMatchObject({ kind: 'pending' });
    await expect.poll(() => lookUpOperation('refund', operation)).toMatchObject({ kind });
  });

  it('an amount that the sandbox cannot represent is not sent', async () => {
    const attempt = cardAttempt();
    const operation = operationOn(attempt, await paid(attempt), { money: part(2n ** 53n) });
    expect(await connection.refund?.(operation)).toMatchObject({ kind: 'not_sent', because: 'turned_away' });
  });

  it('the verification of a card is found by a look-up', async () => {
    const attempt = verificationAttempt();
    expect(await connection.pay(attempt)).toMatchObject({ kind: 'approved' });
    expect(await lookUp(lookUpOf(attempt))).toMatchObject({ kind: 'approved' });
    const declined = magic('INSUFFICIENT_FUNDS');
    expect(await connection.pay(verificationAttempt(declined))).toMatchObject({
      kind: 'declined',
      iso8583Code: '51',
    });
  });
});

describe('payers at the sandbox provider', () => {
  const act = (url: string, action: string) =>
    fetch(`${url}/${action}`, { method: 'POST', redirect: 'manual' });

  it.each([
    ['pay', { kind: 'approved', reference: expect.stringMatching(/^wo_/) }],
    ['decline', { kind: 'declined', iso8583Code: '05' }],
    ['leave', { kind: 'declined', iso8583Code: '17' }],
  ])("a payment gets its outcome when the payer presses %s on the wallet's page", async (action, outcome) => {
    const attempt = redirectAttempt();
    const url = payersPage(await connection.pay(attempt));
    expect(await lookUp(lookUpOf(attempt))).toMatchObject({ kind: 'awaits_payer', show: { page: url } });
    await act(url, action);
    expect(await lookUp(lookUpOf(attempt))).toMatchObject(outcome);
  });

  it('a wallet payment to complete takes the money once, however often it is completed', async () => {
    const attempt = redirectAttempt({ method: { by: 'payer', type: 'WALLET_D', show: 'page' } } as object);
    const url = payersPage(await connection.pay(attempt));
    const query = lookUpOf(attempt);
    expect(await connection.complete?.(query)).toMatchObject({ kind: 'not_sent' });
    await act(url, 'pay');
    expect(await lookUp(query)).toMatchObject({ kind: 'to_complete' });
    for (let i = 0; i < 2; i++) {
      const outcome = await connection.complete?.({ ...query, reference: url.split('/').at(-1) });
      expect(outcome).toMatchObject({ kind: 'approved', reference: expect.stringMatching(/^wo_/) });
    }
    expect(await lookUp(query)).toMatchObject({ kind: 'approved' });
    expect(await connection.refund?.(operationOn(attempt, undefined))).toMatchObject({ kind: 'approved' });
  });

  it('a redirect that is closed before the payer pays is expired, and the payer can no longer pay', async () => {
    const attempt = redirectAttempt();
    const url = payersPage(await connection.pay(attempt));
    expect(await lookUp(lookUpOf(attempt, { close: true }))).toMatchObject({ kind: 'expired' });
    await act(url, 'pay');
    expect(await lookUp(lookUpOf(attempt))).toMatchObject({ kind: 'expired' });
  });

  it.each([
    ['CHALLENGE_PASSED', { kind: 'approved', authorizationCode: expect.stringMatching(/^[A-Z0-9]{6}$/) }],
    ['CHALLENGE_FAILED', { kind: 'declined', iso8583Code: '05' }],
    ['CHALLENGE_ABANDONED', { kind: 'awaits_payer' }],
  ])('a challenge at the sandbox leads to the outcome of its magic card: %s', async (name, outcome) => {
    const attempt = cardAttempt(magic(name));
    const sent = await connection.pay(attempt);
    const url = payersPage(sent);
    expect(url).toMatch(/\/challenge\/ch_/);
    // There is no response code yet, so the record contains null.
    expect(sent).not.toHaveProperty('providerData.iso8583ResponseCode', expect.anything());
    await act(url, 'pay');
    expect(await lookUp(lookUpOf(attempt))).toMatchObject(outcome);
  });
});
