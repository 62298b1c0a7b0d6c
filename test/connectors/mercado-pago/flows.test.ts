import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { withClockAhead } from '../../support/process-clock.ts';
import { cardAttempt } from '../attempts.ts';
import { lookUp, lookUpOperation } from '../under-test.ts';
import {
  attemptInPesos,
  type MercadoPagoUnderTest,
  openMercadoPago,
  paid,
  refundOf,
  sentAway,
} from './mercado-pago-under-test.ts';

let under: MercadoPagoUnderTest;

beforeEach(async () => {
  under = await openMercadoPago();
});
afterEach(() => under.close());

const HOUR_MS = 3_600_000;
/** An attempt whose preference expired so long ago. */

describe('a payer who is sent to Mercado Pago', () => {
  it('goes to the init_point of a preference that holds our transaction', async () => {
    const { attempt, outcome } = await sentAway(under);
    const preference = under.fake.preference();
    expect(outcome).toMatchObject({
      redirectUrl: preference.init_point,
      reference: preference.id,
      providerData: { id: 'MERCADO_PAGO', transactionId: preference.id },
    });
    expect(preference.external_reference).toBe(attempt.transactionId);
    expect(under.fake.requests).toMatchObject([{ key: attempt.transactionId }]);
  });

  it('can still be sent there again while nobody has paid', async () => {
    const { attempt, reference, outcome } = await sentAway(under);
    expect(await lookUp(under, attempt, reference)).toMatchObject({
      kind: 'redirect',
      redirectUrl: outcome.redirectUrl,
    });
  });

  it('has paid once a payment is approved, whatever was rejected before', async () => {
    const { attempt, reference } = await sentAway(under);
    under.fake.pay(under.fake.preference(), 'rejected', 'cc_rejected_insufficient_amount');
    expect(await lookUp(under, attempt, reference)).toMatchObject({ kind: 'redirect' });
    const payment = under.fake.pay(under.fake.preference());
    under.fake.pay(under.fake.preference(), 'rejected', 'cc_rejected_duplicated_payment');
    expect(await lookUp(under, attempt, reference)).toMatchObject({
      kind: 'approved',
      authorizationCode: '301299',
      reference: `${reference}/${payment.id}`,
      providerData: { transactionId: String(payment.id), status: 'approved', statusDetail: 'accredited' },
    });
  });

  it('who paid twice is approved by the first payment, with an alarm that names the second', async () => {
    const { attempt, reference } = await sentAway(under);
    const first = under.fake.pay(under.fake.preference());
    const second = under.fake.pay(under.fake.preference());
    expect(await lookUp(under, attempt, reference)).toMatchObject({
      kind: 'approved',
      reference: `${reference}/${first.id}`,
      providerData: { responseMessage: `alarm: paid more than once; refund ${second.id}` },
    });
  });

  it('waits while a payment is pending, and is found by its id when the search forgets it', async () => {
    const { attempt, reference } = await sentAway(under);
    const payment = under.fake.pay(under.fake.preference(), 'pending', 'pending_waiting_payment');
    const pending = await lookUp(under, attempt, reference);
    expect(pending).toMatchObject({ kind: 'pending', reference: `${reference}/${payment.id}` });
    payment.status = 'approved';
    under.fake.lagSearch(true);
    expect(await lookUp(under, attempt, `${reference}/${payment.id}`)).toMatchObject({ kind: 'approved' });
  });

  it('is found by the id that a notification gave, while the search does not list it', async () => {
    const { attempt, reference } = await sentAway(under);
    const payment = under.fake.pay(under.fake.preference());
    under.fake.lagSearch(true);
    expect(await lookUp(under, attempt, reference)).toMatchObject({ kind: 'redirect' });
    const hint = { reference: String(payment.id) };
    expect(await lookUp(under, attempt, reference, { hint })).toMatchObject({
      kind: 'approved',
      reference: `${reference}/${payment.id}`,
    });
  });

  it('is found by a notification though another payment of theirs is known, and neither is listed', async () => {
    const { attempt, reference } = await sentAway(under);
    const ticket = under.fake.pay(under.fake.preference(), 'pending', 'pending_waiting_payment');
    const byCard = under.fake.pay(under.fake.preference());
    under.fake.lagSearch(true);
    const told = { hint: { reference: String(byCard.id) } };
    expect(await lookUp(under, attempt, `${reference}/${ticket.id}`, told)).toMatchObject({
      kind: 'approved',
      reference: `${reference}/${byCard.id}`,
    });
    // The ticket is paid, too, once the payment has succeeded.
    ticket.status = 'approved';
    const again = { hint: { reference: String(ticket.id) } };
    expect(await lookUp(under, attempt, `${reference}/${byCard.id}`, again)).toMatchObject({
      kind: 'approved',
      alarm: true,
      reference: `${reference}/${byCard.id}`,
      providerData: { responseMessage: `alarm: paid more than once; refund ${ticket.id}` },
    });
  });

  it('is declined only once the preference expired and its search surely lists everything', async () => {
    const attempt = attemptInPesos();
    const { reference } = await sentAway(under, attempt);
    under.fake.pay(under.fake.preference(), 'rejected', 'cc_rejected_insufficient_amount');
    const at = (payerTimeLeftMs: number) => lookUp(under, attempt, reference, { payerTimeLeftMs });
    expect(await at(HOUR_MS)).toMatchObject({ kind: 'redirect' });
    expect(await at(-60_000)).toMatchObject({ kind: 'unknown' });
    expect(await at(-HOUR_MS)).toMatchObject({ kind: 'declined', iso8583Code: '51' });
  });

  it('who never paid has let the preference expire', async () => {
    const attempt = attemptInPesos();
    const { reference } = await sentAway(under, attempt);
    expect(await lookUp(under, attempt, reference, { payerTimeLeftMs: -HOUR_MS })).toMatchObject({
      kind: 'expired',
      reference,
    });
  });

  it('cannot pay any more once the preference is closed', async () => {
    const { attempt, reference } = await sentAway(under);
    // Even if the clock of the process is ahead.
    const closing = () => lookUp(under, attempt, reference, { close: true });
    expect(await withClockAhead(HOUR_MS / 2, closing)).toMatchObject({ kind: 'unknown' });
    expect(() => under.fake.pay(under.fake.preference())).toThrow('the preference is closed');
    expect(under.fake.requests.at(-2)).toMatchObject({ method: 'PUT' });
  });

  it('who paid before the preference was closed has paid', async () => {
    const { attempt, reference } = await sentAway(under);
    under.fake.pay(under.fake.preference());
    expect(await lookUp(under, attempt, reference, { close: true })).toMatchObject({ kind: 'approved' });
  });

  it('is not known to have paid when closing, searching or reading the preference is lost', async () => {
    const { attempt, reference } = await sentAway(under);
    for (const [on, close] of [
      [/^PUT/, true],
      [/^GET .v1.payments.search/, false],
      [/^GET .checkout/, false],
    ] as const) {
      under.fake.lose(on, 'after');
      expect(await lookUp(under, attempt, reference, { close })).toMatchObject({ kind: 'unknown' });
    }
  });
});

describe("a payer on Mercado Pago's page", () => {
  /** Presses a button there. @returns where the payer is sent back to. */
  async function press(redirectUrl: string, choice: string): Promise<URL> {
    const url = new URL(redirectUrl);
    expect(await (await fetch(url)).text()).toContain(`value="${choice}"`);
    url.pathname = '/checkout/v1/choose';
    url.searchParams.set('choice', choice);
    const { headers } = await fetch(url, { redirect: 'manual' });
    return new URL(headers.get('location') ?? '');
  }

  it.each([
    ['pay', 'approved'],
    ['pay in cash', 'pending'],
    ['pay without funds', 'redirect'],
    ['leave', 'redirect'],
  ])('who chooses to %s comes back to us, and the look-up says: %s', async (choice, kind) => {
    const { attempt, outcome, reference } = await sentAway(under);
    const back = await press(outcome.redirectUrl, choice);
    expect(back.href.startsWith(`${attempt.returnUrl}?`)).toBe(true);
    expect(back.searchParams.get('external_reference')).toBe(attempt.transactionId);
    expect(await lookUp(under, attempt, reference)).toMatchObject({ kind });
  });
});

describe('making a preference', () => {
  it('is not_sent when its answer is lost, and the transaction ends without a payer', async () => {
    const attempt = attemptInPesos();
    under.fake.lose(/^POST .checkout/, 'after');
    expect(await under.connection.pay(attempt)).toMatchObject({ kind: 'not_sent', because: 'unreachable' });
    expect(await lookUp(under, attempt, undefined)).toMatchObject({ kind: 'unknown' });
    expect(await lookUp(under, attempt, undefined, { close: true })).toMatchObject({ kind: 'not_sent' });
  });

  it('is an alarm when somebody paid a preference that we sent nobody to', async () => {
    const attempt = attemptInPesos();
    await under.connection.pay(attempt);
    under.fake.pay(under.fake.preference(), 'rejected', 'rejected_by_bank');
    expect(await lookUp(under, attempt, undefined, { close: true })).toMatchObject({
      kind: 'unknown',
      detail: expect.stringMatching(/^alarm:/),
    });
    under.fake.pay(under.fake.preference());
    expect(await lookUp(under, attempt, undefined)).toMatchObject({ kind: 'approved' });
  });

  it('is turned away, with nothing sent, for a card, another currency or an amount that there is not', async () => {
    const refused = [
      cardAttempt(),
      attemptInPesos({ money: { minorUnits: 1_000n, currency: 'BRL' } }),
      attemptInPesos({ money: { minorUnits: 0n, currency: 'ARS' } }),
    ];
    for (const attempt of refused) {
      expect(await under.connection.pay(attempt)).toMatchObject({ kind: 'not_sent', because: 'turned_away' });
    }
    expect(under.fake.requests).toEqual([]);
  });
});

describe('refunds at Mercado Pago', () => {
  it('are made in several parts, each under its own key, and no more than was paid', async () => {
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
    expect(more).toMatchObject({ kind: 'not_sent', because: 'turned_away' });
    expect(await lookUp(under, attempt, reference)).toMatchObject({ kind: 'approved' });
  });

  it.each(['before', 'after'] as const)(
    'are made once when the connection breaks %s Mercado Pago acted',
    async (when) => {
      const { attempt, reference, payment } = await paid(under);
      const refund = refundOf(attempt, reference, 100_000n);
      under.fake.lose(/refunds$/, when);
      expect(await under.connection.refund?.(refund)).toMatchObject({ kind: 'unknown' });
      expect(await lookUpOperation(under, 'refund', refund)).toMatchObject({ kind: 'approved' });
      expect(under.fake.refunds.get(String(payment.id))).toHaveLength(1);
    },
  );

  it('are never repeated, once keys may have ended, while one of the same amount may be ours', async () => {
    const { attempt, reference, payment } = await paid(under);
    const refund = refundOf(attempt, reference, 100_000n);
    under.fake.lose(/refunds$/, 'after');
    await under.connection.refund?.(refund);
    const ageMs = HOUR_MS;
    // However far the clock of the process is behind.
    const asked = () => lookUpOperation(under, 'refund', refund, { ageMs });
    expect(await withClockAhead(-24 * HOUR_MS, asked)).toMatchObject({ kind: 'unknown' });
    const other = refundOf(attempt, reference, 200_000n);
    expect(await lookUpOperation(under, 'refund', other, { ageMs })).toMatchObject({ kind: 'approved' });
    expect(under.fake.refunds.get(String(payment.id))).toHaveLength(2);
  });

  it('that are pending are looked up by their id', async () => {
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
    }
    expect(await lookUpOperation(under, 'refund', refund, { reference: '5' })).toMatchObject({
      kind: 'unknown',
    });
  });

  it('are turned away for a payment whose id was never learned', async () => {
    const refund = refundOf(attemptInPesos(), 'only-a-preference', 1n);
    expect(await under.connection.refund?.(refund)).toMatchObject({
      kind: 'not_sent',
      because: 'turned_away',
    });
    expect(under.fake.requests).toEqual([]);
  });
});
