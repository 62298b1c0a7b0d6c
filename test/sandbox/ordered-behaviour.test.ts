import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { readOrder } from '#sandbox/behaviour.ts';
import { CHARGE, type ProviderUnderTest, startProvider } from './provider-under-test.ts';

let provider: ProviderUnderTest;
beforeAll(async () => {
  provider = await startProvider();
});
afterAll(() => provider?.close());

let calls = 0;

/** Makes a charge whose description orders a behaviour, and reads what the ledger has of it a little later. */
async function charge(behaviour: string, key = `ordered-${calls++}`) {
  const response = await provider
    .post('/v1/charges', { ...CHARGE, description: `sandbox:${behaviour}` }, { 'idempotency-key': key })
    .catch(() => undefined);
  const body = await response?.text().catch(() => undefined);
  const rows = await provider.query(`SELECT status FROM sandbox.ledger WHERE idempotency_key = '${key}'`);
  return { key, status: response?.status, body, recorded: rows[0]?.status };
}

describe('a description that orders a behaviour', () => {
  it.each([
    ['reset_before', undefined, undefined],
    ['error_before', 500, undefined],
    ['reset_after', undefined, 'approved'],
    ['error_after', 500, 'approved'],
    ['html', 200, 'approved'],
    ['wrong_amount', 201, 'approved'],
    ['wrong_currency', 201, 'approved'],
    ['duplicate_approval', 201, 'approved'],
    ['decline:51', 402, 'declined'],
    ['late_approval:50', 201, 'approved'],
  ])('gets what it orders, such as %s', async (behaviour, status, recorded) => {
    expect(await charge(behaviour)).toMatchObject({ status, recorded });
  });

  it('can make the answer break off halfway', async () => {
    expect(await charge('truncated')).toMatchObject({ body: undefined, recorded: 'approved' });
  });

  it('can make the answer ten megabytes long', async () => {
    const { body, recorded } = await charge('huge');
    expect(body?.length).toBeGreaterThan(10 * 1024 * 1024);
    expect(recorded).toBe('approved');
  });

  it('can falsify amount and currency, in the answer only', async () => {
    const { key, body } = await charge('wrong_amount');
    expect(JSON.parse(body ?? '').amount).toBe(CHARGE.amount + 1);
    const response = await provider.get(`/v1/by-idempotency-key/${key}`);
    expect(await response.json()).toMatchObject({ amount: CHARGE.amount });
  });

  it('takes effect once: a repeat learns what was recorded', async () => {
    const { key } = await charge('error_after');
    expect(await charge('error_after', key)).toMatchObject({ status: 201 });
  });

  it('cannot approve late a payment that was closed meanwhile', async () => {
    const timers = vi.spyOn(globalThis, 'setTimeout');
    const late = charge('late_approval:59999', 'late');
    const isItsDelay = ([, ms]: unknown[]) => ms === 59_999;
    await expect.poll(() => timers.mock.calls.some(isItsDelay)).toBe(true);
    const delay = timers.mock.calls.findIndex(isItsDelay);
    expect((await provider.post('/v1/by-idempotency-key/late/close', {})).status).toBe(200);
    // Its time comes now.
    clearTimeout(timers.mock.results[delay]?.value);
    timers.mock.calls[delay]?.[0]();
    vi.restoreAllMocks();
    expect(await late).toMatchObject({ status: 409, recorded: 'closed' });
  });

  it.each([
    '',
    'nonsense',
    'decline',
    'decline:00',
    'decline:5',
    'late_approval:',
    'late_approval:60001',
    'html:1',
    'html,truncated',
    'notify_twice:1',
    'notify_late',
    'stay_open:1',
    'expire_after',
    'html,',
  ])('is refused with 400, and nothing is done, if the behaviour is invalid: %s', async (behaviour) => {
    const refused = await charge(behaviour);
    expect(refused).toMatchObject({ status: 400, recorded: undefined });
    expect(refused.body).toContain('"param":"description"');
  });

  it('has no effect unless it begins with "sandbox:"', () => {
    expect(readOrder('A sandbox: with a spade')).toEqual({});
    expect(readOrder(undefined)).toEqual({});
  });
});

describe('the list of the ledger', () => {
  it('has every entry and no card data', async () => {
    const { key } = await charge('decline:05');
    const response = await provider.get('/v1/ledger');
    const text = await response.text();
    expect(JSON.parse(text).entries).toContainEqual(
      expect.objectContaining({
        idempotency_key: key,
        kind: 'charge',
        status: 'declined',
        amount: CHARGE.amount,
      }),
    );
    // Random ids may contain any four digits.
    expect(text.replace(/[0-9a-f-]{36}/g, '')).not.toContain(CHARGE.card.number.slice(-4));
  });

  it('needs the API key', async () => {
    expect((await fetch(`${provider.origin}/v1/ledger`)).status).toBe(401);
  });
});
