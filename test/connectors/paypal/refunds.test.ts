import { describe, expect, it } from 'vitest';
import { operationOn } from '../attempts.ts';
import { lookUp, lookUpOperation, openedForEach } from '../under-test.ts';
import type { FakeOrder, Json } from './fake-ledger.ts';
import { connectionFor, openPayPal, paid, REFUND, referenceOf, TOKEN } from './paypal-under-test.ts';

const HOUR_MS = 3_600_000;
const PART = { minorUnits: 100_000n, currency: 'USD' };
const paypal = openedForEach(openPayPal);

describe('a refund by PayPal', () => {
  it('PayPal refunds the whole amount', async () => {
    const { attempt, reference } = await paid(paypal);
    const outcome = await paypal.connection.refund?.(operationOn(attempt, reference));
    expect(outcome).toMatchObject({ kind: 'approved' });
    expect(await lookUp(paypal, attempt, reference)).toMatchObject({ kind: 'approved' });
  });

  it('PayPal refunds several parts, up to the paid amount', async () => {
    const { attempt, reference } = await paid(paypal);
    for (const kind of ['approved', 'approved', 'approved', 'not_sent']) {
      const outcome = await paypal.connection.refund?.(operationOn(attempt, reference, { money: PART }));
      expect(outcome).toMatchObject({ kind });
    }
  });

  it('a PayPal refund is pending if PayPal says so, and found by its own ID', async () => {
    const { attempt, reference } = await paid(paypal);
    paypal.fake.ledger.refundStatuses.push('PENDING');
    const operation = operationOn(attempt, reference);
    const outcome = await paypal.connection.refund?.(operation);
    expect(outcome).toMatchObject({ kind: 'pending' });
    const [refund] = [...paypal.fake.ledger.orders.values()].flatMap(({ refunds }) => refunds);
    if (!refund) throw new Error('no refund');
    refund.status = 'COMPLETED';
    expect(
      await lookUpOperation(paypal, 'refund', operation, { reference: referenceOf(outcome) }),
    ).toMatchObject({ kind: 'approved' });
  });

  it.each(['FAILED', 'CANCELLED'])('a PayPal refund is declined if PayPal says %s', async (status) => {
    const { attempt, reference } = await paid(paypal);
    paypal.fake.ledger.refundStatuses.push(status);
    expect(await paypal.connection.refund?.(operationOn(attempt, reference))).toMatchObject({
      kind: 'declined',
    });
  });

  it.each(['lost after', 'error after', 'no answer'] as const)(
    'the outcome of a PayPal refund whose response was lost is unknown until it is found in its order: %s',
    async (trouble) => {
      const { attempt, reference } = await paid(paypal);
      const operation = operationOn(attempt, reference, { money: PART });
      paypal.fake.trouble(REFUND, trouble);
      const connection = connectionFor(paypal, trouble);
      expect(await connection.refund?.(operation)).toMatchObject({ kind: 'unknown' });
      expect(await lookUpOperation(paypal, 'refund', operation)).toMatchObject({ kind: 'approved' });
    },
  );

  it('a PayPal refund that never arrived is made once, by its look-up, with the same request ID', async () => {
    const { attempt, orderId, reference } = await paid(paypal);
    const operation = operationOn(attempt, reference, { money: PART });
    paypal.fake.trouble(REFUND, 'lost before');
    await paypal.connection.refund?.(operation);
    for (const close of [false, true]) {
      expect(await lookUpOperation(paypal, 'refund', operation, { close })).toMatchObject({
        kind: 'approved',
      });
    }
    const asked = paypal.fake.requests.filter(({ call }) => REFUND.test(call));
    expect(new Set(asked.map(({ requestId, body }) => `${requestId} ${body}`)).size).toBe(1);
    expect(paypal.fake.ledger.orders.get(orderId)?.refunds).toHaveLength(1);
  });

  it('a PayPal refund is found by its request ID if PayPal lists refunds without our transaction IDs', async () => {
    const { attempt, orderId, reference } = await paid(paypal);
    const [one, another] = [PART, PART].map((money) => operationOn(attempt, reference, { money }));
    if (!one || !another) throw new Error('expected two');
    await paypal.connection.refund?.(one);
    paypal.fake.trouble(REFUND, 'lost after');
    await paypal.connection.refund?.(another);
    const refunds = paypal.fake.ledger.orders.get(orderId)?.refunds ?? [];
    refunds.forEach(forget);
    const found = await lookUpOperation(paypal, 'refund', another);
    expect(found).toMatchObject({ kind: 'approved', reference: refunds[1]?.id });
    expect(refunds).toHaveLength(2);
  });

  it('a PayPal refund whose repeat is refused stays unknown until it is closed hours later', async () => {
    const { attempt, reference } = await paid(paypal);
    const lost = operationOn(attempt, reference, { money: PART });
    paypal.fake.trouble(REFUND, 'lost before');
    await paypal.connection.refund?.(lost);
    await paypal.connection.refund?.(operationOn(attempt, reference));
    const old = { ageMs: 7 * HOUR_MS };
    for (const asked of [{}, { close: true, ageMs: 6 * HOUR_MS }, old]) {
      expect(await lookUpOperation(paypal, 'refund', lost, asked)).toMatchObject({ kind: 'unknown' });
    }
    const closed = await lookUpOperation(paypal, 'refund', lost, { ...old, close: true });
    expect(closed).toMatchObject({ kind: 'not_sent' });
  });

  it('a PayPal refund is closed hours later if its last repeat is known not to have been sent', async () => {
    const { attempt, reference } = await paid(paypal);
    const operation = operationOn(attempt, reference, { money: PART });
    const refused = { error: 'invalid_token', error_description: 'The token was not found' };
    paypal.fake.trouble(REFUND, { status: 401, body: refused });
    paypal.fake.trouble(TOKEN, 'lost before');
    const old = { ageMs: 7 * HOUR_MS, close: true };
    expect(await lookUpOperation(paypal, 'refund', operation, old)).toMatchObject({ kind: 'not_sent' });
  });

  it.each(['lost after', 'error after', 'no answer'] as const)(
    'the outcome of a PayPal refund that its last repeat may have made is unknown at any age, and found later: %s',
    async (trouble) => {
      const { attempt, orderId, reference } = await paid(paypal);
      const operation = operationOn(attempt, reference, { money: PART });
      paypal.fake.trouble(REFUND, 'lost before');
      await paypal.connection.refund?.(operation);
      const old = { ageMs: 7 * HOUR_MS, close: true };
      paypal.fake.trouble(REFUND, trouble);
      const connection = connectionFor(paypal, trouble);
      const closed = await lookUpOperation({ connection }, 'refund', operation, old);
      expect(closed).toMatchObject({ kind: 'unknown' });
      expect(paypal.fake.ledger.orders.get(orderId)?.refunds).toHaveLength(1);
      expect(await lookUpOperation(paypal, 'refund', operation, old)).toMatchObject({ kind: 'approved' });
    },
  );

  it('a PayPal refund is not repeated once PayPal may have forgotten its request ID', async () => {
    const { attempt, orderId, reference } = await paid(paypal);
    const operation = operationOn(attempt, reference, { money: PART });
    const old = { ageMs: 45 * 24 * HOUR_MS };
    expect(await lookUpOperation(paypal, 'refund', operation, old)).toMatchObject({ kind: 'unknown' });
    const closed = await lookUpOperation(paypal, 'refund', operation, { ...old, close: true });
    expect(closed).toMatchObject({ kind: 'not_sent' });
    expect(paypal.fake.ledger.orders.get(orderId)?.refunds).toHaveLength(0);
  });

  it('a PayPal refund is found in its order even when PayPal may have forgotten its request ID', async () => {
    const { attempt, reference } = await paid(paypal);
    const operation = operationOn(attempt, reference, { money: PART });
    paypal.fake.trouble(REFUND, 'lost after');
    await paypal.connection.refund?.(operation);
    const old = { ageMs: 45 * 24 * HOUR_MS, close: true };
    expect(await lookUpOperation(paypal, 'refund', operation, old)).toMatchObject({ kind: 'approved' });
    expect(paypal.seen(REFUND)).toBe(1);
  });

  it.each<[string, (order: Pick<FakeOrder, 'captures' | 'refunds'>) => void]>([
    ['lists no refund', ({ refunds }) => void refunds.splice(0)],
    ['lists a refund without our ID', ({ refunds }) => forget(refunds[1])],
    [
      'lists no refund, but two captures',
      ({ captures, refunds }) => {
        refunds.splice(0);
        const [capture] = captures;
        if (capture)
          captures.splice(0, 1, { ...capture, status: 'COMPLETED' }, { ...capture, status: 'COMPLETED' });
      },
    ],
    [
      'lists a refund without our ID, and shows its capture in an earlier state',
      ({ captures, refunds }) => {
        Object.assign(captures[0] ?? {}, { status: 'COMPLETED' });
        forget(refunds[1]);
      },
    ],
  ])(
    'a PayPal refund is not closed, however old, while the order of a refunded capture %s',
    async (_how, hide) => {
      const { attempt, orderId, reference } = await paid(paypal);
      const [other, operation] = [PART, PART].map((money) => operationOn(attempt, reference, { money }));
      if (!other || !operation) throw new Error('expected two');
      for (const one of [other, operation]) await paypal.connection.refund?.(one);
      hide(paypal.fake.ledger.orders.get(orderId) ?? { captures: [], refunds: [] });
      const old = { ageMs: 45 * 24 * HOUR_MS, close: true };
      expect(await lookUpOperation(paypal, 'refund', operation, old)).toMatchObject({ kind: 'unknown' });
    },
  );

  it('a PayPal refund that its order lists twice raises an alarm', async () => {
    const { attempt, orderId, reference } = await paid(paypal);
    const operation = operationOn(attempt, reference, { money: PART });
    await paypal.connection.refund?.(operation);
    const refunds = paypal.fake.ledger.orders.get(orderId)?.refunds ?? [];
    for (const refund of [...refunds]) refunds.push({ ...refund, id: '9XX00000XX000000X' });
    expect(await lookUpOperation(paypal, 'refund', operation)).toMatchObject({
      kind: 'unknown',
      alarm: true,
    });
  });

  it('a PayPal refund whose order cannot be read is not repeated', async () => {
    const { attempt, reference } = await paid(paypal);
    const operation = operationOn(attempt, reference, { money: PART });
    paypal.fake.trouble(/GET .*\/orders\//, 'error before');
    expect(await lookUpOperation(paypal, 'refund', operation)).toMatchObject({ kind: 'unknown' });
    expect(paypal.seen(REFUND)).toBe(0);
  });

  it('a PayPal refund is repeated if the order lists only a refund of another transaction', async () => {
    const { attempt, orderId, reference } = await paid(paypal);
    await paypal.connection.refund?.(operationOn(attempt, reference, { money: PART }));
    const operation = operationOn(attempt, reference, { money: PART });
    const found = await lookUpOperation(paypal, 'refund', operation);
    const refunds = paypal.fake.ledger.orders.get(orderId)?.refunds;
    expect([found, refunds?.length]).toMatchObject([{ kind: 'approved', reference: refunds?.[1]?.id }, 2]);
  });

  it('the outcome of a PayPal refund is unknown if its look-up by ID returns another refund', async () => {
    const { attempt, reference } = await paid(paypal);
    const operation = operationOn(attempt, reference, { money: PART });
    const made = referenceOf(await paypal.connection.refund?.(operation));
    const body = { id: '9XX00000XX000000X', status: 'COMPLETED', custom_id: operation.transactionId };
    const amount = { currency_code: 'USD', value: '1000.00' };
    paypal.fake.trouble(/GET .*\/refunds\//, { status: 200, body: { ...body, amount } });
    const asked = { reference: made };
    expect(await lookUpOperation(paypal, 'refund', operation, asked)).toMatchObject({
      ...{ kind: 'unknown', alarm: true },
    });
  });

  it('a PayPal refund is never looked up by an ID that does not have PayPal’s form', async () => {
    const { attempt, reference } = await paid(paypal);
    const operation = operationOn(attempt, reference, { money: PART });
    await paypal.connection.refund?.(operation);
    const asked = { reference: '../orders/X' };
    expect(await lookUpOperation(paypal, 'refund', operation, asked)).toMatchObject({ kind: 'approved' });
    expect(paypal.seen(/GET .*\/refunds\//)).toBe(0);
  });

  it('a PayPal refund acts on the capture of its payment unless its target names another capture', async () => {
    const { attempt, orderId, reference } = await paid(paypal);
    const { payment } = operationOn(attempt, reference);
    const target = { ...payment, reference: undefined };
    const refund = (over: object) =>
      paypal.connection.refund?.({ ...operationOn(attempt, reference), ...over });
    expect(await refund({ target, money: PART })).toMatchObject({ kind: 'approved' });
    expect(await refund({ payment: target, money: PART })).toMatchObject({ kind: 'approved' });
    expect(paypal.fake.ledger.orders.get(orderId)?.refunds).toHaveLength(2);
  });

  it.each([undefined, 'no order', '5O190127TN364715T'])(
    'a PayPal refund of a payment with an unknown order or capture is never repeated: %s',
    async (reference) => {
      const { attempt } = await paid(paypal);
      const before = paypal.fake.requests.length;
      const operation = operationOn(attempt, reference, { money: PART });
      expect(await lookUpOperation(paypal, 'refund', operation)).toMatchObject({ kind: 'unknown' });
      expect(paypal.fake.requests).toHaveLength(before);
    },
  );

  it('a PayPal refund of an amount that PayPal cannot express is never made, whole or otherwise', async () => {
    const { attempt, reference } = await paid(paypal);
    const operation = operationOn(attempt, reference, { money: { minorUnits: 1n, currency: 'CLP' } });
    const refused = { kind: 'not_sent', because: 'turned_away' };
    expect(await paypal.connection.refund?.(operation)).toMatchObject(refused);
    expect(await lookUpOperation(paypal, 'refund', operation)).toMatchObject({ kind: 'unknown' });
    expect(paypal.seen(REFUND)).toBe(0);
  });

  it('a PayPal refund of a payment with an unknown capture is turned away before anything is sent', async () => {
    const { attempt, orderId } = await paid(paypal);
    const before = paypal.fake.requests.length;
    for (const reference of [orderId, `${orderId}/..`]) {
      const outcome = await paypal.connection.refund?.(operationOn(attempt, reference));
      expect(outcome).toMatchObject({ kind: 'not_sent', because: 'turned_away' });
    }
    expect(paypal.fake.requests).toHaveLength(before);
  });
});

/** Removes our transaction's id from a refund. */
function forget(refund: Json | undefined): void {
  for (const name of ['custom_id', 'invoice_id']) delete refund?.[name];
}
