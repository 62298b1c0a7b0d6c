import { create } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import { payersPage } from '#src/connectors/port/outcome.ts';
import { Secret } from '#src/secret.ts';
import { withClockAhead } from '../../support/process-clock.ts';
import { enrollmentAttempt } from '../attempts.ts';
import { lookUp, openedForEach } from '../under-test.ts';
import { FAKE_ACCOUNT } from './fake-mercado-pago.ts';
import { attemptInPesos, MONEY, openMercadoPago, SECRETS, sentAway } from './mercado-pago-under-test.ts';

const under = openedForEach(openMercadoPago);

const HOUR_MS = 3_600_000;

describe('payers redirected to Mercado Pago', () => {
  it('a redirected payer goes to the init_point of a preference that contains our transaction ID', async () => {
    const { attempt, outcome } = await sentAway(under);
    const preference = under.fake.preference();
    expect(outcome).toMatchObject({
      show: { page: preference.init_point },
      reference: preference.id,
      providerData: { id: 'MERCADO_PAGO', transactionId: preference.id },
    });
    expect(preference.external_reference).toBe(attempt.transactionId);
    expect(under.fake.requests).toMatchObject([{ key: attempt.transactionId }]);
  });

  it('a payer can be redirected to Mercado Pago again until they have paid', async () => {
    const { attempt, reference, outcome } = await sentAway(under);
    expect(await lookUp(under, attempt, reference)).toMatchObject({
      kind: 'awaits_payer',
      show: { page: payersPage(outcome) },
    });
  });

  it('a payer has paid at Mercado Pago once a payment is approved, whatever was rejected before', async () => {
    const { attempt, reference } = await sentAway(under);
    under.fake.pay(under.fake.preference(), 'rejected', 'cc_rejected_insufficient_amount');
    expect(await lookUp(under, attempt, reference)).toMatchObject({ kind: 'awaits_payer' });
    const payment = under.fake.pay(under.fake.preference());
    under.fake.pay(under.fake.preference(), 'rejected', 'cc_rejected_duplicated_payment');
    expect(await lookUp(under, attempt, reference)).toMatchObject({
      kind: 'approved',
      authorizationCode: '301299',
      reference: `${reference}/${payment.id}`,
      providerData: { transactionId: String(payment.id), status: 'approved', statusDetail: 'accredited' },
    });
  });

  it("a payer's own data stays out of the record of their payment", async () => {
    const { attempt, reference } = await sentAway(under);
    under.fake.pay(under.fake.preference());
    const outcome = await lookUp(under, attempt, reference);
    expect(outcome).toMatchObject({ providerData: { rawResponse: { collector_id: FAKE_ACCOUNT } } });
    expect(JSON.stringify(outcome)).not.toContain('payer@example.com');
    expect(outcome).not.toHaveProperty('alarm');
  });

  it('an attempt that was paid twice is approved with the first payment, and an alarm names the second', async () => {
    const { attempt, reference } = await sentAway(under);
    const first = under.fake.pay(under.fake.preference());
    const second = under.fake.pay(under.fake.preference());
    const third = under.fake.pay(under.fake.preference());
    expect(await lookUp(under, attempt, reference)).toMatchObject({
      kind: 'approved',
      reference: `${reference}/${first.id}`,
      providerData: {
        responseMessage: `alarm: charged twice: the first payment is ${first.id}; refund ${third.id}, ${second.id}`,
      },
    });
    for (const payment of [second, third]) payment.status = 'refunded';
    expect(await lookUp(under, attempt, reference)).not.toHaveProperty('alarm');
  });

  it('a pending payment of a redirected payer is found by its ID if the search omits it', async () => {
    const { attempt, reference } = await sentAway(under);
    const payment = under.fake.pay(under.fake.preference(), 'pending', 'pending_waiting_payment');
    const pending = await lookUp(under, attempt, reference);
    expect(pending).toMatchObject({ kind: 'pending', reference: `${reference}/${payment.id}` });
    payment.status = 'approved';
    under.fake.lagSearch(true);
    const known = `${reference}/${payment.id}`;
    expect(await lookUp(under, attempt, known)).toMatchObject({ kind: 'approved' });
    // A notification of the same payment is not a second payment.
    const told = await lookUp(under, attempt, known, { hint: { providerPaymentId: String(payment.id) } });
    expect(told).toMatchObject({ kind: 'approved' });
    expect(told).not.toHaveProperty('alarm');
    under.fake.lose(/^GET .v1.payments.\d+$/, 'after');
    expect(await lookUp(under, attempt, known)).toMatchObject({ kind: 'unknown' });
  });

  it('a payment that the search omits is found by the ID in a notification', async () => {
    const { attempt, reference } = await sentAway(under);
    const payment = under.fake.pay(under.fake.preference());
    under.fake.lagSearch(true);
    expect(await lookUp(under, attempt, reference)).toMatchObject({ kind: 'awaits_payer' });
    const hint = { providerPaymentId: String(payment.id) };
    const found = { kind: 'approved', reference: `${reference}/${payment.id}` };
    expect(await lookUp(under, attempt, reference, { hint })).toMatchObject(found);
    // Even if the search lists an earlier payment.
    const earlier = { ...payment, id: 7, status: 'rejected' };
    under.fake.answerOnce(/search$/, 200, { paging: { total: 1 }, results: [earlier] });
    expect(await lookUp(under, attempt, reference, { hint })).toMatchObject(found);
    under.fake.answerOnce(/^GET .v1.payments.\d+$/, 500, {});
    const unread = await lookUp(under, attempt, reference, { hint });
    expect(unread).toMatchObject({ kind: 'unknown' });
    expect(unread).not.toHaveProperty('alarm');
  });

  it('a payment is found through a notification even if another is known and the search lists neither', async () => {
    const { attempt, reference } = await sentAway(under);
    const ticket = under.fake.pay(under.fake.preference(), 'pending', 'pending_waiting_payment');
    const byCard = under.fake.pay(under.fake.preference());
    under.fake.lagSearch(true);
    const told = { hint: { providerPaymentId: String(byCard.id) } };
    expect(await lookUp(under, attempt, `${reference}/${ticket.id}`, told)).toMatchObject({
      kind: 'approved',
      reference: `${reference}/${byCard.id}`,
    });
    // The ticket is also paid, after the payment has succeeded.
    ticket.status = 'approved';
    const again = { hint: { providerPaymentId: String(ticket.id) } };
    expect(await lookUp(under, attempt, `${reference}/${byCard.id}`, again)).toMatchObject({
      kind: 'approved',
      alarm: true,
      reference: `${reference}/${byCard.id}`,
      providerData: {
        responseMessage: `alarm: charged twice: the first payment is ${byCard.id}; refund ${ticket.id}`,
      },
    });
  });

  it('a payer is declined only once the preference has expired and the search lists everything', async () => {
    const attempt = attemptInPesos();
    const { reference } = await sentAway(under, attempt);
    under.fake.pay(under.fake.preference(), 'rejected', 'cc_rejected_insufficient_amount');
    const at = (payerTimeLeftMs: number) => lookUp(under, attempt, reference, { payerTimeLeftMs });
    expect(await at(HOUR_MS)).toMatchObject({ kind: 'awaits_payer' });
    expect(await at(-60_000)).toMatchObject({ kind: 'unknown' });
    expect(await at(-HOUR_MS)).toMatchObject({ kind: 'declined', iso8583Code: '51' });
  });

  it('a preference expires if its payer never pays', async () => {
    const attempt = attemptInPesos();
    const { reference } = await sentAway(under, attempt);
    expect(await lookUp(under, attempt, reference, { payerTimeLeftMs: -HOUR_MS })).toMatchObject({
      kind: 'expired',
      reference,
      providerData: { status: 'expired' },
    });
  });

  it('a payer can no longer pay once the preference is closed', async () => {
    const { attempt, reference } = await sentAway(under);
    // The preference is closed even if the process's clock is ahead.
    const closing = () => lookUp(under, attempt, reference, { close: true });
    expect(await withClockAhead(HOUR_MS / 2, closing)).toMatchObject({ kind: 'unknown' });
    expect(() => under.fake.pay(under.fake.preference())).toThrow('the preference is closed');
    expect(under.fake.requests.at(-2)).toMatchObject({ method: 'PUT' });
  });

  it('a payment made before the preference was closed is found when a look-up closes it', async () => {
    const { attempt, reference } = await sentAway(under);
    under.fake.pay(under.fake.preference());
    expect(await lookUp(under, attempt, reference, { close: true })).toMatchObject({ kind: 'approved' });
  });

  it('the result of a look-up is unknown if closing, searching or reading the preference fails', async () => {
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

describe('preferences that Mercado Pago refuses', () => {
  const withPayer = (payer: object) => attemptInPesos({ customerPayer: create(CustomerPayerSchema, payer) });

  it('a preference refused for an optional field is created without it, under a separate key', async () => {
    const { attempt } = await sentAway(under, withPayer({ firstName: 'Ana', email: 'ana@example' }));
    expect(under.fake.preference().payer).toEqual({ name: 'Ana' });
    const id = attempt.transactionId;
    expect(under.fake.requests.map(({ key }) => key)).toEqual([id, `${id}:2`]);
  });

  it.each([
    ['statement_descriptor invalid', undefined],
    ['items[0].unit_price invalid', undefined],
    ['invalid preference', [{ code: 1, description: 'unit_price must be positive' }]],
  ])(
    'a preference refused for a field that is required or was not sent is not sent again: %s',
    async (message, cause) => {
      under.fake.answerOnce(/^POST .checkout/, 400, { message, error: 'bad_request', status: 400, cause });
      expect(await under.connection.pay(attemptInPesos())).toMatchObject({ kind: 'not_sent' });
      expect(under.fake.requests).toHaveLength(1);
    },
  );
});

describe('connections whose preferences Mercado Pago refuses', () => {
  it.each([
    ...[400, 404, 409, 422, 499].map((status) => [status, 'turned_away'] as const),
    ...[302, 401, 403, 429, 500, 503].map((status) => [status, 'unreachable'] as const),
  ])('the connection is judged by the status of a refused preference: %i is %s', async (status, because) => {
    under.fake.answerOnce(/^POST .checkout/, status, { message: 'no', status });
    expect(await under.connection.pay(attemptInPesos())).toMatchObject({ kind: 'not_sent', because });
  });
});

describe("a payer on Mercado Pago's page", () => {
  /** Presses a button on the page. @returns the URL to which the payer returns. */
  async function press(redirectUrl: string, choice: string): Promise<URL> {
    const url = new URL(redirectUrl);
    expect(await (await fetch(url)).text()).toContain(`value="${choice}"`);
    url.pathname = '/checkout/v1/choose';
    url.searchParams.set('choice', choice);
    const { headers } = await fetch(url, { redirect: 'manual' });
    return new URL(headers.get('location') ?? '');
  }

  it.each([
    ['pay', 'approved', 'returnUrl'],
    ['pay in cash', 'pending', 'returnUrl'],
    ['pay without funds', 'awaits_payer', 'cancelUrl'],
    ['leave', 'awaits_payer', 'cancelUrl'],
  ] as const)(
    "a payer who chooses to %s on Mercado Pago's page returns to us, and the look-up reports: %s",
    async (choice, kind, way) => {
      const { attempt, outcome, reference } = await sentAway(under);
      const back = await press(payersPage(outcome), choice);
      expect(back.href.startsWith(`${attempt[way]}?`)).toBe(true);
      expect(back.searchParams.get('external_reference')).toBe(attempt.transactionId);
      expect(await lookUp(under, attempt, reference)).toMatchObject({ kind });
    },
  );
});

describe('the creation of a preference', () => {
  it('a preference whose response was lost is not_sent, and a look-up that closes it reports the same', async () => {
    const attempt = attemptInPesos();
    under.fake.lose(/^POST .checkout/, 'after');
    expect(await under.connection.pay(attempt)).toMatchObject({ kind: 'not_sent', because: 'unreachable' });
    expect(await lookUp(under, attempt, undefined)).toMatchObject({ kind: 'unknown' });
    expect(await lookUp(under, attempt, undefined, { close: true })).toMatchObject({ kind: 'not_sent' });
  });

  it('a transaction whose preference was never stored ends once its time and the lag of searches are over', async () => {
    const attempt = attemptInPesos();
    const at = (minutesAgo: number, close = false) =>
      lookUp(under, attempt, undefined, { payerTimeLeftMs: -minutesAgo * 60_000, close });
    expect(await at(1)).toMatchObject({ kind: 'unknown' });
    expect(await at(1, true)).toMatchObject({ kind: 'not_sent' });
    expect(await at(60)).toMatchObject({ kind: 'expired' });
  });

  it('a transaction of a kind that is never sent to Mercado Pago has an unknown outcome', async () => {
    expect(await lookUp(under, enrollmentAttempt(), undefined)).toMatchObject({ kind: 'unknown' });
    expect(under.fake.requests).toEqual([]);
  });

  it('a preference that somebody paid although no payer was redirected to it raises an alarm', async () => {
    const attempt = attemptInPesos();
    await under.connection.pay(attempt);
    under.fake.pay(under.fake.preference(), 'rejected', 'rejected_by_bank');
    expect(await lookUp(under, attempt, undefined, { close: true })).toMatchObject({
      kind: 'unknown',
      detail: expect.stringMatching(/^alarm:/),
    });
    under.fake.pay(under.fake.preference());
    expect(await lookUp(under, attempt, undefined)).toMatchObject({ kind: 'approved', isAnyTry: true });
  });

  it("Mercado Pago's account is told, and another account's token is refused", async () => {
    expect(await under.connection.readAccount()).toEqual({
      ...{ result: 'ACCEPTED', account: String(FAKE_ACCOUNT), environment: 'TEST' },
    });
    const revoked = await openMercadoPago({ ...SECRETS, access_token: new Secret('APP_USR-revoked') });
    expect(await revoked.connection.readAccount()).toMatchObject({ result: 'REFUSED' });
    await revoked.close();
    const another = await openMercadoPago(SECRETS, { account_id: '7' });
    expect(await another.connection.readAccount()).toMatchObject({
      detail: `the credentials belong to the account ${FAKE_ACCOUNT}, and account_id is 7`,
    });
    await another.close();
  });

  it('a preference for an enrolled wallet, another currency or an inexpressible amount is turned away', async () => {
    const refused = [
      enrollmentAttempt({ money: MONEY }),
      attemptInPesos({ money: { minorUnits: 1_000n, currency: 'BRL' } }),
      attemptInPesos({ money: { minorUnits: 0n, currency: 'ARS' } }),
    ];
    for (const attempt of refused) {
      expect(await under.connection.pay(attempt)).toMatchObject({ kind: 'not_sent', because: 'turned_away' });
    }
    expect(under.fake.requests).toEqual([]);
  });
});
