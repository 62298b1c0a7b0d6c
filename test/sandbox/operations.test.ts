import type { FastifyInstance } from 'fastify';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { type Answer, ask, CHARGE, read, startApp } from './provider-under-test.ts';

describe('operations', () => {
  let origin = '';
  let app: FastifyInstance;
  let database: TestDatabase;

  beforeAll(async () => {
    database = await createTestDatabase({ empty: true });
    ({ app, origin } = await startApp({ databaseUrl: database.url }));
  });
  afterAll(async () => {
    await app.close();
    await database.drop();
  });

  afterEach(() => vi.restoreAllMocks());

  async function charge(over: object = {}): Promise<Answer> {
    return (await ask(origin, '/v1/charges', { ...CHARGE, ...over })).answer;
  }
  const authorization = (over: object = {}) => charge({ capture: false, ...over });
  const operate = (
    kind: string,
    payment: Answer,
    amount?: number,
    over: object = {},
    idempotencyKey?: string,
  ) =>
    ask(
      origin,
      `/v1/${kind}`,
      { payment: payment.id, ...(amount !== undefined && { amount, currency: 'USD' }), ...over },
      idempotencyKey,
    );
  const now = (payment: Answer) => read(origin, `/v1/by-id/${payment.id}`);

  it('a charge is captured in parts, and refunded in parts', async () => {
    const payment = await authorization();
    expect(payment).toMatchObject({ status: 'approved', captured: false, amount_captured: 0 });
    for (const amount of [1_000, 4_575]) {
      expect(await operate('captures', payment, amount)).toMatchObject({
        status: 201,
        answer: { object: 'capture', status: 'succeeded', amount, payment: payment.id, failure_code: null },
      });
    }
    for (const amount of [5_000, 575]) {
      expect((await operate('refunds', payment, amount)).answer).toMatchObject({
        status: 'succeeded',
        amount,
      });
    }
    expect(await now(payment)).toMatchObject({
      status: 'approved',
      captured: true,
      amount_captured: 5_575,
      amount_refunded: 5_575,
      amount_canceled: 0,
    });
  });

  it('a canceled authorization cannot be captured, and a captured one cannot be canceled', async () => {
    const canceled = await authorization();
    const cancellation = await operate('cancellations', canceled);
    expect(cancellation.answer).toMatchObject({ status: 'succeeded', amount: 5_575 });
    expect(await now(canceled)).toMatchObject({ status: 'canceled', amount_canceled: 5_575 });
    expect(await operate('captures', canceled, 1)).toMatchObject({
      status: 402,
      answer: { status: 'failed', failure_code: 'not_capturable', response_code: '57' },
    });
    const captured = await charge();
    expect((await operate('cancellations', captured)).answer.failure_code).toBe('already_captured');
  });

  it('the cancellation of a partly captured charge releases the rest', async () => {
    const payment = await authorization();
    await operate('captures', payment, 1_000);
    expect((await operate('cancellations', payment)).answer).toMatchObject({
      status: 'succeeded',
      amount: 4_575,
    });
    expect(await now(payment)).toMatchObject({
      status: 'approved',
      amount_captured: 1_000,
      amount_canceled: 4_575,
    });
  });

  it('a final capture, or the last one that a charge allows, releases the rest', async () => {
    const finished = await authorization();
    await operate('captures', finished, 1_000, { final: true });
    expect(await now(finished)).toMatchObject({ amount_captured: 1_000, amount_canceled: 4_575 });
    const limited = await authorization({ max_captures: 2 });
    await operate('captures', limited, 1);
    expect(await now(limited)).toMatchObject({ amount_canceled: 0 });
    await operate('captures', limited, 2);
    expect(await now(limited)).toMatchObject({ amount_captured: 3, amount_canceled: 5_572 });
    expect((await operate('captures', limited, 1)).answer.failure_code).toBe('already_captured');
  });

  it.each([
    ['captures', 5_576, {}, 'amount_too_large', '61'],
    ['captures', 1, { currency: 'EUR' }, 'currency_differs', '57'],
    ['refunds', 1, {}, 'not_refundable', '57'],
    ['completions', undefined, {}, 'not_completable', '57'],
  ])(
    '%s of %s %j fail with a reason, and a look-up returns the same reason',
    async (kind, amount, over, code, iso) => {
      const payment = await authorization();
      const { status, answer } = await operate(kind, payment, amount, over);
      expect([status, answer]).toMatchObject([
        402,
        { status: 'failed', failure_code: code, response_code: iso },
      ]);
      expect(await read(origin, `/v1/by-idempotency-key/${answer.idempotency_key}`)).toEqual(answer);
      expect(await now(payment)).toMatchObject({
        amount_captured: 0,
        amount_canceled: 0,
        amount_refunded: 0,
      });
    },
  );

  it('a repeated idempotency key returns the first response, and a 409 for a different request', async () => {
    const payment = await charge();
    const other = await charge();
    const first = await operate('refunds', payment, 100, {}, 'refund-1');
    const again = await operate('refunds', payment, 100, {}, 'refund-1');
    expect(again).toEqual(first);
    expect((await now(payment)).amount_refunded).toBe(100);
    expect((await operate('refunds', payment, 101, {}, 'refund-1')).status).toBe(409);
    expect((await operate('refunds', other, 100, {}, 'refund-1')).status).toBe(409);
    expect((await operate('cancellations', payment, undefined, {}, 'refund-1')).status).toBe(409);
    expect((await operate('refunds', payment, 1, {}, payment.idempotency_key)).status).toBe(409);
    expect(await now(other)).toMatchObject({ amount_refunded: 0 });
  });

  it('a refund sent a hundred times at once is made once', async () => {
    const payment = await charge();
    const refunds = Array.from({ length: 100 }, () => operate('refunds', payment, 60, {}, 'refund-100'));
    const answers = await Promise.all(refunds);
    expect(new Set(answers.map(({ answer }) => answer.id)).size).toBe(1);
    expect((await now(payment)).amount_refunded).toBe(60);
  });

  it('concurrent refunds never exceed the captured amount', async () => {
    const payment = await charge();
    const refunds = Array.from({ length: 40 }, (_, i) => operate('refunds', payment, 500 + i));
    const given = (await Promise.all(refunds)).filter(({ status }) => status === 201);
    const total = given.reduce((sum, { answer }) => sum + answer.amount, 0);
    expect((await now(payment)).amount_refunded).toBe(total);
    expect(total).toBeLessThanOrEqual(5_575);
    expect(total).toBeGreaterThan(5_575 - 540);
  });

  it('concurrent captures and a cancellation add up to exactly the authorized amount', async () => {
    const payment = await authorization();
    await Promise.all([
      ...Array.from({ length: 8 }, () => operate('captures', payment, 1_000)),
      operate('cancellations', payment),
    ]);
    const { amount_captured: captured, amount_canceled: canceled } = await now(payment);
    expect(Number(captured) + Number(canceled)).toBe(5_575);
  });

  it('an operation can identify its payment by idempotency key', async () => {
    const payment = await charge();
    const { answer } = await operate('refunds', { ...payment, id: payment.idempotency_key }, 100);
    expect(answer).toMatchObject({ status: 'succeeded', payment: payment.id });
  });

  it('an operation on an unknown payment, or on another operation, returns 404', async () => {
    const { answer: refund } = await operate('refunds', await charge(), 1);
    for (const id of ['ch_00000000-0000-4000-8000-000000000000', refund.id]) {
      expect((await operate('refunds', { ...refund, id }, 1)).status).toBe(404);
    }
  });

  it('an operation whose key was closed before it arrived is not made', async () => {
    const payment = await charge();
    const closed = await ask(origin, '/v1/by-idempotency-key/never/close', {});
    expect(closed).toMatchObject({ status: 200, answer: { object: 'closed' } });
    expect((await operate('refunds', payment, 100, {}, 'never')).status).toBe(409);
    expect((await now(payment)).amount_refunded).toBe(0);
  });

  it('closing the key of an operation that was made changes nothing', async () => {
    const payment = await authorization();
    await ask(origin, `/v1/by-idempotency-key/${payment.idempotency_key}/close`, {});
    expect(await now(payment)).toEqual(payment);
  });

  it('a pending refund reserves its amount, and releases it if it fails', async () => {
    const payment = await charge();
    const done = await operate('refunds', payment, 1_000, { description: 'sandbox:done_after:50' });
    const failed = await operate('refunds', payment, 500, { description: 'sandbox:fail_after:50' });
    expect([done, failed]).toMatchObject([
      { status: 201, answer: { status: 'pending' } },
      { status: 201, answer: { status: 'pending' } },
    ]);
    await expect.poll(() => now(payment)).toMatchObject({ amount_refunded: 1_000 });
    expect(await now(done.answer)).toMatchObject({ status: 'succeeded' });
    expect(await now(failed.answer)).toMatchObject({ status: 'failed', failure_code: 'declined' });
  });

  it.each([
    ['captures', 100, 'sandbox:decline:05', 'declined', {}],
    ['captures', 100, 'sandbox:fail_after:50', 'declined', { final: true }],
    ['refunds', 100, 'sandbox:decline:51', 'declined', {}],
    ['cancellations', undefined, 'sandbox:too_late', 'already_captured', {}],
  ])(
    '%s of %s fail if the description says so, and change nothing: %s',
    async (kind, amount, description, code, over) => {
      const payment = await (kind === 'refunds' ? charge() : authorization());
      const { answer } = await operate(kind, payment, amount, { description, ...over });
      await expect.poll(() => now(answer)).toMatchObject({ status: 'failed', failure_code: code });
      expect(await now(payment)).toEqual(payment);
    },
  );

  it.each(['hang_after', 'reset_after', 'error_after', 'html'])(
    'an operation is made once despite %s',
    async (name) => {
      const payment = await charge();
      const description = `sandbox:${name}`;
      operate('refunds', payment, 100, { description }, `refund-${name}`).catch(() => {});
      await expect
        .poll(() => read(origin, `/v1/by-idempotency-key/refund-${name}`))
        .toMatchObject({ status: 'succeeded' });
      expect((await operate('refunds', payment, 100, { description }, `refund-${name}`)).status).toBe(201);
      expect((await now(payment)).amount_refunded).toBe(100);
    },
  );

  it('an authorization lapses, even if it was partly captured', async () => {
    const whole = await authorization({ description: 'sandbox:expire_after:60000' });
    const partly = await authorization({ description: 'sandbox:expire_after:60000' });
    await operate('captures', partly, 75);
    const clock = Date.now;
    vi.spyOn(Date, 'now').mockImplementation(() => clock() + 60_000);
    expect(await now(whole)).toMatchObject({ status: 'expired', amount_canceled: 5_575 });
    expect(await now(partly)).toMatchObject({
      status: 'approved',
      amount_captured: 75,
      amount_canceled: 5_500,
    });
    expect((await operate('captures', whole, 1)).answer.failure_code).toBe('expired');
  });

  it('an order that needs completion is paid when it is completed after the payer’s approval', async () => {
    const body = { wallet: 'WALLET_D', amount: 5_575, currency: 'USD' };
    const open = (await ask(origin, '/v1/wallet-orders', body)).answer;
    expect(open).toMatchObject({ status: 'created', needs_completion: true });
    expect(await operate('completions', open, undefined, {}, 'complete-1')).toMatchObject({
      status: 422,
      answer: { error: { type: 'payer_has_not_approved' } },
    });
    const left = await fetch(`${origin}/checkout/${open.id}/pay`, { method: 'POST', redirect: 'manual' });
    expect(left.status).toBe(303);
    expect(await now(open)).toMatchObject({ status: 'payer_approved', amount_captured: 0 });
    for (let i = 0; i < 2; i++) {
      const completed = await operate('completions', open, undefined, {}, 'complete-1');
      expect(completed).toMatchObject({ status: 201, answer: { status: 'succeeded', amount: 5_575 } });
    }
    expect(await now(open)).toMatchObject({ status: 'paid', amount_captured: 5_575 });
    expect((await operate('refunds', open, 5_575)).answer.status).toBe('succeeded');
  });

  it('the ledger pages show the totals of every payment', async () => {
    const payment = await charge();
    await operate('refunds', payment, 75);
    const { entries } = await read(origin, '/v1/ledger');
    const mine = (entries as Answer[]).filter(
      (entry) => entry.id === payment.id || entry.payment === payment.id,
    );
    expect(mine).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ kind: 'charge', amount_captured: 5_575, amount_refunded: 75 }),
        expect.objectContaining({ kind: 'refund', status: 'succeeded', amount: 75 }),
      ]),
    );
  });
});
