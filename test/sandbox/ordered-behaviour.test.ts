import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { readOrder } from '#sandbox/behaviour.ts';
import { CHARGE, type ProviderUnderTest, startProvider } from './provider-under-test.ts';

let provider: ProviderUnderTest;
beforeAll(async () => {
  provider = await startProvider();
});
afterAll(() => provider?.close());

let calls = 0;

/** Makes a charge whose description orders a behavior, and reads its state in the ledger. */
async function charge(behaviour: string, key = `ordered-${calls++}`) {
  const response = await provider
    .post('/v1/charges', { ...CHARGE, description: `sandbox:${behaviour}` }, { 'idempotency-key': key })
    .catch(() => undefined);
  const body = await response?.text().catch(() => undefined);
  const rows = await provider.query(`SELECT status FROM sandbox.ledger WHERE idempotency_key = '${key}'`);
  return { key, status: response?.status, body, recorded: rows[0]?.status };
}

describe('behavior orders in descriptions', () => {
  it.each([
    ['reset_before', undefined, undefined],
    ['error_before', 500, undefined],
    ['refuse_before', 429, undefined],
    ['reset_after', undefined, 'approved'],
    ['error_after', 500, 'approved'],
    ['html', 200, 'approved'],
    ['wrong_amount', 201, 'approved'],
    ['wrong_currency', 201, 'approved'],
    ['duplicate_approval', 201, 'approved'],
    ['decline:51', 402, 'declined'],
    ['late_approval:50', 201, 'approved'],
  ])('the order %s determines the response and the ledger entry', async (behaviour, status, recorded) => {
    expect(await charge(behaviour)).toMatchObject({ status, recorded });
  });

  it('an order can truncate the response', async () => {
    expect(await charge('truncated')).toMatchObject({ body: undefined, recorded: 'approved' });
  });

  it('an order can make the response ten megabytes long', async () => {
    const { body, recorded } = await charge('huge');
    expect(body?.length).toBeGreaterThan(10 * 1024 * 1024);
    expect(recorded).toBe('approved');
  });

  it('an order can falsify the amount in the response, but not in the ledger', async () => {
    const { key, body } = await charge('wrong_amount');
    expect(JSON.parse(body ?? '').amount).toBe(CHARGE.amount + 1);
    const response = await provider.get(`/v1/by-idempotency-key/${key}`);
    expect(await response.json()).toMatchObject({ amount: CHARGE.amount });
  });

  it('an order takes effect once: a repeat returns the recorded charge', async () => {
    const { key } = await charge('error_after');
    expect(await charge('error_after', key)).toMatchObject({ status: 201 });
  });

  it('a late approval is refused if the key was closed in the meantime', async () => {
    const timers = vi.spyOn(globalThis, 'setTimeout');
    const late = charge('late_approval:59999', 'late');
    const isItsDelay = ([, ms]: unknown[]) => ms === 59_999;
    await expect.poll(() => timers.mock.calls.some(isItsDelay)).toBe(true);
    const delay = timers.mock.calls.findIndex(isItsDelay);
    expect((await provider.post('/v1/by-idempotency-key/late/close', {})).status).toBe(200);
    // Fires the timer now.
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
    'dispute_after',
    'dispute_after:60001',
    'dispute_after:1:settled',
    'dispute_after:1:won:lost',
    'html,',
  ])('a charge with an invalid order is refused with 400 and not recorded: %s', async (behaviour) => {
    const refused = await charge(behaviour);
    expect(refused).toMatchObject({ status: 400, recorded: undefined });
    expect(refused.body).toContain('"param":"description"');
  });

  it('a description without the prefix "sandbox:" orders nothing', () => {
    expect(readOrder('A sandbox: with a spade')).toEqual({});
    expect(readOrder(undefined)).toEqual({});
  });
});

describe('the ledger list', () => {
  it("the ledger list has a declined charge, without its card's last four digits", async () => {
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
    // Random IDs can contain the same four digits.
    expect(text.replace(/[0-9a-f-]{36}/g, '')).not.toContain(CHARGE.card.number.slice(-4));
  });

  it('the ledger list requires the API key', async () => {
    expect((await fetch(`${provider.origin}/v1/ledger`)).status).toBe(401);
  });
});
