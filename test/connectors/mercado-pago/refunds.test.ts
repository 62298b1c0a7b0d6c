import { describe, expect, it } from 'vitest';
import { withClockAhead } from '../../support/process-clock.ts';
import { lookUp, lookUpOperation, openedForEach } from '../under-test.ts';
import { attemptInPesos, openMercadoPago, paid, refundOf } from './mercado-pago-under-test.ts';

const under = openedForEach(openMercadoPago);

const HOUR_MS = 3_600_000;

describe('refunds at Mercado Pago', () => {
  it('a payment at Mercado Pago is refunded in parts, each with its own key, up to the paid amount', async () => {
    const { attempt, reference } = await paid(under);
    const parts = [100_050n, 150_000n, 50_000n].map((part) => refundOf(attempt, reference, part));
    for (const part of parts) {
      expect(await under.connection.refund?.(part)).toMatchObject({
        kind: 'approved',
        reference: expect.stringMatching(/^\d+$/),
      });
    }
    const keys = under.fake.requests.filter(({ path }) => path.endsWith('/refunds')).map(({ key }) => key);
    expect(keys).toEqual(parts.map(({ transactionId }) => transactionId));
    const more = await under.connection.refund?.(refundOf(attempt, reference, 1n));
    expect(more).toMatchObject({ kind: 'not_sent', because: 'turned_away', refused: 'amount' });
    expect(await lookUp(under, attempt, reference)).toMatchObject({ kind: 'approved' });
  });

  it.each(['before', 'after'] as const)(
    'a refund is made once if the connection breaks %s Mercado Pago acts',
    async (when) => {
      const { attempt, reference, payment } = await paid(under);
      const refund = refundOf(attempt, reference, 100_000n);
      under.fake.lose(/refunds$/, when);
      expect(await under.connection.refund?.(refund)).toMatchObject({ kind: 'unknown' });
      expect(await lookUpOperation(under, 'refund', refund)).toMatchObject({ kind: 'approved' });
      expect(under.fake.refunds.get(String(payment.id))).toHaveLength(1);
    },
  );

  it.each([
    [0, -24],
    [0, 24],
    [HOUR_MS, -24],
  ])(
    'a refund whose response was lost is found in the list %i ms later, even if keys are ignored and the clock is %i h ahead',
    async (ageMs, hours) => {
      const { attempt, reference, payment } = await paid(under);
      under.fake.ignoreKeys();
      const refund = refundOf(attempt, reference, 100_000n);
      under.fake.lose(/refunds$/, 'after');
      await under.connection.refund?.(refund);
      const asked = () => lookUpOperation(under, 'refund', refund, { ageMs });
      const found = await withClockAhead(hours * HOUR_MS, asked);
      const [made, ...others] = under.fake.refunds.get(String(payment.id)) ?? [];
      expect(found).toMatchObject({ kind: 'approved', reference: String(made?.id) });
      expect(others).toEqual([]);
    },
  );

  it('a refund that never arrived is made by its look-up, however late, next to a refund of another amount', async () => {
    const { attempt, reference, payment } = await paid(under);
    await under.connection.refund?.(refundOf(attempt, reference, 50_000n));
    const refund = refundOf(attempt, reference, 100_000n);
    const found = await lookUpOperation(under, 'refund', refund, { ageMs: HOUR_MS });
    expect(found).toMatchObject({ kind: 'approved' });
    expect(under.fake.refunds.get(String(payment.id))).toMatchObject([{ amount: 500 }, { amount: 1_000 }]);
  });

  it('a refund whose repeat is refused stays unknown, since the first request may still arrive', async () => {
    const { attempt, reference } = await paid(under);
    const refund = refundOf(attempt, reference, 100_000n);
    under.fake.answerOnce(/^POST .*refunds$/, 400, { message: 'no', status: 400 });
    expect(await lookUpOperation(under, 'refund', refund)).toMatchObject({ kind: 'unknown' });
  });

  it("a refund is not repeated while Mercado Pago's list of refunds cannot be read", async () => {
    const { attempt, reference, payment } = await paid(under);
    under.fake.ignoreKeys();
    const refund = refundOf(attempt, reference, 100_000n);
    under.fake.lose(/refunds$/, 'after');
    await under.connection.refund?.(refund);
    under.fake.lose(/^GET .*refunds$/, 'after');
    expect(await lookUpOperation(under, 'refund', refund)).toMatchObject({ kind: 'unknown' });
    expect(under.fake.refunds.get(String(payment.id))).toHaveLength(1);
  });

  it('a refund is made even if another transaction has a refund of the same amount', async () => {
    const { attempt, reference, payment } = await paid(under);
    const first = await under.connection.refund?.(refundOf(attempt, reference, 100_000n));
    const claimed = [first && 'reference' in first ? String(first.reference) : ''];
    const second = refundOf(attempt, reference, 100_000n);
    under.fake.lose(/refunds$/, 'before');
    await under.connection.refund?.(second);
    const found = await lookUpOperation(under, 'refund', second, {}, claimed);
    const made = under.fake.refunds.get(String(payment.id)) ?? [];
    expect(made).toHaveLength(2);
    expect(found).toMatchObject({ kind: 'approved', reference: String(made[1]?.id) });
  });

  it('a second refund of the same amount is made while its key is valid, and needs manual review after that', async () => {
    const { attempt, reference, payment } = await paid(under);
    await under.connection.refund?.(refundOf(attempt, reference, 100_000n));
    const made = under.fake.refunds.get(String(payment.id)) ?? [];
    Object.assign(made[0] ?? {}, { date_created: new Date(Date.now() - 2 * HOUR_MS).toISOString() });
    const refund = refundOf(attempt, reference, 100_000n);
    const keyLivesMs = 10 * 60_000;
    const old = { ageMs: keyLivesMs };
    expect(await lookUpOperation(under, 'refund', refund, old)).toMatchObject({ kind: 'unknown' });
    const young = () => lookUpOperation(under, 'refund', refund, { ageMs: keyLivesMs - 1 });
    expect(await withClockAhead(-24 * HOUR_MS, young)).toMatchObject({ kind: 'approved' });
    expect(under.fake.refunds.get(String(payment.id))).toHaveLength(2);
  });

  it.each(['rejected', 'cancelled'])(
    'a refund that is %s at Mercado Pago is not mistaken for a later one',
    async (status) => {
      const { attempt, reference, payment } = await paid(under);
      await under.connection.refund?.(refundOf(attempt, reference, 100_000n));
      const [failed] = under.fake.refunds.get(String(payment.id)) ?? [];
      Object.assign(failed ?? {}, { status });
      const refund = refundOf(attempt, reference, 100_000n);
      expect(await lookUpOperation(under, 'refund', refund)).toMatchObject({ kind: 'declined' });
      await under.connection.refund?.(refund);
      const made = under.fake.refunds.get(String(payment.id))?.at(-1);
      expect(await lookUpOperation(under, 'refund', refund)).toMatchObject({
        kind: 'approved',
        reference: String(made?.id),
      });
    },
  );

  it('a pending refund at Mercado Pago is looked up by its ID', async () => {
    const { attempt, reference, payment } = await paid(under);
    const refund = refundOf(attempt, reference, 100_000n);
    const made = await under.connection.refund?.(refund);
    const [stored] = under.fake.refunds.get(String(payment.id)) ?? [];
    if (made?.kind !== 'approved' || !stored || made.reference === undefined) throw new Error('no refund');
    for (const [status, kind] of Object.entries({
      in_process: 'pending',
      rejected: 'declined',
      cancelled: 'declined',
      approved: 'approved',
      received: 'unknown',
    })) {
      stored.status = status;
      expect(await lookUpOperation(under, 'refund', refund, { reference: made.reference })).toMatchObject({
        kind,
      });
      expect(await lookUpOperation(under, 'refund', refund, { reference: '5' })).toMatchObject({
        kind: 'unknown',
      });
    }
    expect(under.fake.refunds.get(String(payment.id))).toHaveLength(1);
  });

  it.each([
    ['a payment with an unknown ID', 'only-a-preference', 1n],
    ['an amount that Mercado Pago cannot express, which would refund everything', '123-abc/456', 0n],
  ])('a refund of %s is turned away, and its look-up makes none', async (_what, reference, minorUnits) => {
    const refund = refundOf(attemptInPesos(), reference, minorUnits);
    expect(await under.connection.refund?.(refund)).toMatchObject({
      kind: 'not_sent',
      because: 'turned_away',
    });
    expect(await lookUpOperation(under, 'refund', refund)).toMatchObject({ kind: 'unknown' });
    expect(under.fake.requests).toEqual([]);
  });
});
