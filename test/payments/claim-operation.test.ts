import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { type Payment, Payment_Status, Transaction_Type } from '#gen/payments/v1/payment_pb.js';
import { checkDue } from '#src/payments/check/checker.ts';
import {
  type ClaimedOperation,
  claimOperationOn,
  type OperationDeps,
  type RequestedOperation,
} from '#src/payments/operate/claim-operation.ts';
import { decodeRecord } from '#src/payments/stored-record.ts';
import type { Database } from '#src/store/engine/database.ts';
import { ConnectionLostError, DatabaseUnavailableError } from '#src/store/engine/database-error.ts';
import { interleave } from '../support/interleave.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { onOperatedPayments, payments } from './operated-payments.ts';

onOperatedPayments({ empties: 'payment, transaction' });

const REFUND = { type: 'REFUND', money: { minorUnits: 100n, currency: 'USD' } } as const;
const CANCEL = { type: 'CANCEL', money: { minorUnits: 10_000n, currency: 'USD' } } as const;

/** Requests a refund of 1.00 USD, or another operation. */
function asked(
  payment: Payment,
  over: Partial<RequestedOperation> = {},
  type: 'REFUND' | 'CANCEL' = 'REFUND',
) {
  const planned = { ...(type === 'REFUND' ? REFUND : CANCEL), isWhole: false, isFinal: type === 'CANCEL' };
  return {
    ...{ method: type, paymentId: payment.id, transactionId: '', merchantReference: '', description: '' },
    ...{ reason: '', hash: () => ({ hash: Buffer.alloc(32), shape: Buffer.alloc(16) }), needsKey: true },
    ...{ mayClose: false, named: ({ base }) => base, target: ({ base }) => base, plan: () => planned },
    ...over,
  } satisfies RequestedOperation;
}

async function claim(
  of: RequestedOperation,
  key: string | undefined = randomUUID(),
  over: Partial<OperationDeps> = {},
): Promise<ClaimedOperation> {
  const keyed = { ...of, accountId: ACCOUNT_ONE, idempotencyKey: key };
  const claimed = await claimOperationOn({ ...payments.deps, ...over }, keyed);
  if ('currentCancel' in claimed) throw new Error('the payment is canceled already');
  return claimed;
}

/** The database with a hook that runs instead of each claim, and the number of claims. */
function aroundClaims(instead: (run: () => Promise<unknown>) => Promise<unknown>) {
  const claims = { count: 0 };
  const query: Database['query'] = (statement, values) => {
    const run = () => payments.database.query(statement, values);
    if (statement.name !== 'claim_operation') return run() as never;
    claims.count += 1;
    return instead(run) as never;
  };
  return { database: { ...payments.database, query }, claims };
}

const stateOf = async () => [
  await payments.tables.query('SELECT version, open_operation FROM payment'),
  await payments.tables.query('SELECT id FROM transaction'),
];

/** Adds transactions to a payment. */
const add = (payment: Payment, status: 'DECLINED' | 'PENDING', type: string, count = 1) =>
  payments.tables.query(
    `INSERT INTO transaction (id, payment_id, account_id, connection_id, connection_identity, status, amount_minor_units,
       currency, capture, type)
     SELECT gen_random_uuid(), $1, $2, 'ledger', 'ledger', $3, 100, 'USD', true, $4 FROM generate_series(1, $5::int)`,
    [payment.id, ACCOUNT_ONE, status, type, count],
  );

it('an operation on a payment with 199 transactions is claimed, and with 200 refused without a claim', async () => {
  const payment = await payments.pay();
  await add(payment, 'DECLINED', 'REFUND', 199);
  const before = await stateOf();
  await expect(claim(asked(payment))).rejects.toMatchObject({ reason: 'OPERATION_LIMIT_REACHED' });
  expect(await stateOf()).toEqual(before);
  await payments.tables.query(
    `DELETE FROM transaction WHERE account_id = $1
       AND id = (SELECT id FROM transaction WHERE account_id = $1 AND status = 'DECLINED' LIMIT 1)`,
    [ACCOUNT_ONE],
  );
  expect((await claim(asked(payment))).written.transactionId).toBeDefined();
});

describe('a claimed operation', () => {
  it('a claimed operation is stored with its request before anything is sent', async () => {
    const payment = await payments.pay();
    const { written, target, stored } = await claim(
      asked(payment, { merchantReference: 'r-1', description: 'one book', reason: 'it came too late' }),
      'key-1',
    );
    expect(written).toMatchObject({
      ...{ accountId: ACCOUNT_ONE, paymentId: payment.id, version: 1, type: 'REFUND', minorUnits: 100n },
      ...{ baseId: payment.transactions?.id, parentId: payment.transactions?.id, connectionId: 'ledger' },
      ...{ connectionIdentity: 'ledger', idempotencyKey: 'key-1', merchantReference: 'r-1', leaseS: 61 },
    });
    expect([target.id, stored.base.id]).toEqual([payment.transactions?.id, payment.transactions?.id]);
    const { transactions, status } = decodeRecord(written.record);
    expect(Payment_Status[status]).toBe(written.status);
    expect(transactions).toMatchObject({
      ...{ id: written.transactionId, type: Transaction_Type.REFUND },
      ...{ merchantReference: 'r-1', description: 'one book', reason: 'it came too late' },
    });
    expect(payments.provider.moved.at(-1)).toBe(`pay ${payment.transactions?.id}`);
  });

  it('a claimed operation gets its own reference when the merchant sends none', async () => {
    const { written } = await claim(asked(await payments.pay()));
    expect(written.merchantReference).toBeUndefined();
    const { transactions } = decodeRecord(written.record);
    expect(transactions?.merchantReference).toBe(`reference-${written.transactionId}`);
    expect(transactions?.reason).toBeUndefined();
  });

  it('an operation is planned again if the payment has changed meanwhile, at most three times', async () => {
    const payment = await payments.pay();
    const change = () => payments.tables.query('UPDATE payment SET version = version + 1');
    let changes = 2;
    const twice = aroundClaims(async (run) => {
      if (changes-- > 0) await change();
      return run();
    });
    expect((await claim(asked(payment), undefined, twice)).written.version).toBe(3);
    await payments.tables.query('UPDATE payment SET open_operation = NULL');
    const always = aroundClaims(async (run) => {
      await change();
      return run();
    });
    await expect(claim(asked(payment), undefined, always)).rejects.toMatchObject({
      ...{ reason: 'OPERATION_IN_PROGRESS', retryAfterS: 1 },
    });
    expect([twice.claims.count, always.claims.count]).toEqual([3, 3]);
  });

  it('an operation is claimed if its payment was approved before the read, and refused if after it', async () => {
    const learn = async () => {
      await payments.makeDue();
      await checkDue(payments.deps);
    };
    payments.provider.next.push('does it, unanswered');
    const payment = await payments.pay();
    const late = interleave(payments.database, { after: { read_payment_state: learn } });
    await expect(claim(asked(payment), undefined, { database: late })).rejects.toMatchObject({
      reason: 'INVALID_STATUS',
    });
    payments.provider.next.push('does it, unanswered');
    const other = await payments.pay();
    const database = interleave(payments.database, { before: { read_payment_state: learn } });
    const { written } = await claim(asked(other), undefined, { database });
    expect(written).toMatchObject({ type: 'REFUND', paymentId: other.id });
  });

  it('a claimed operation blocks others, which are refused without a claim', async () => {
    const payment = await payments.pay();
    await claim(asked(payment));
    const { database, claims } = aroundClaims((run) => run());
    await expect(claim(asked(payment), 'another key', { database })).rejects.toMatchObject({
      ...{ reason: 'OPERATION_IN_PROGRESS', retryAfterS: 1 },
    });
    expect(claims.count).toBe(0);
  });

  it('an operation is refused if another payment has its key', async () => {
    await claim(asked(await payments.pay()), 'one key');
    const refused = claim(asked(await payments.pay()), 'one key');
    await expect(refused).rejects.toMatchObject({ reason: 'OPERATION_IN_PROGRESS' });
  });
});

describe('a claim that the database does not acknowledge', () => {
  const lost = new ConnectionLostError(new Error('Connection terminated unexpectedly'));
  const refused = new DatabaseUnavailableError(new Error('refused'));
  const ours = new TypeError('a fault of ours');
  it.each([
    [
      'may be stored, and the caller is told to retry',
      lost,
      { reason: 'REQUEST_IN_PROGRESS', cause: lost, retryAfterS: 1 },
    ],
    ['is known not to have been made, and throws the error that says so', refused, refused],
  ])('a claim that the database does not acknowledge %s', async (_what, error, expected) => {
    const payment = await payments.pay();
    const { database, claims } = aroundClaims(() => Promise.reject(error));
    await expect(claim(asked(payment), undefined, { database })).rejects.toMatchObject(expected);
    expect(claims.count).toBe(1);
  });

  it('a claim that fails with an internal fault throws that fault', async () => {
    const payment = await payments.pay();
    const { database } = aroundClaims(() => Promise.reject(ours));
    await expect(claim(asked(payment), undefined, { database })).rejects.toBe(ours);
  });
});

describe('a payment', () => {
  const set = (columns: string) => payments.tables.query(`UPDATE transaction SET ${columns}`);
  const expectRefused = async (of: RequestedOperation, why: RegExp) => {
    const before = await stateOf();
    const message = expect.stringMatching(why);
    await expect(claim(of)).rejects.toMatchObject({ reason: 'INVALID_STATUS', message });
    expect(await stateOf()).toEqual(before);
  };

  it.each([
    ['was declined', "status = 'DECLINED'"],
    ['verified a card only', "type = 'VERIFY'"],
  ])('an operation on a payment that %s is refused', async (_what, columns) => {
    const payment = await payments.pay();
    await set(columns);
    await expectRefused(asked(payment), /^the payment has taken no money and holds none/);
  });

  it.each([
    ['whose outcome is not known', "status = 'PENDING'"],
    ['whose payer has yet to pay', "status = 'CREATED'"],
  ])('a payment %s refuses operations, as it may still take money', async (_what, columns) => {
    const payment = await payments.pay();
    await set(columns);
    // The attempt at its first provider was declined.
    await add(payment, 'DECLINED', 'PURCHASE');
    await expectRefused(asked(payment), /^the payment has no outcome yet and may still take money/);
  });

  it.each([randomUUID(), 'no UUID'])(
    'an operation on an unknown payment is refused with the name of the field: %s',
    async (id) => {
      const refused = claim(asked({ ...(await payments.pay()), id }));
      await expect(refused).rejects.toMatchObject({
        ...{ reason: 'PAYMENT_NOT_FOUND', fields: [{ field: 'payment_id' }] },
      });
    },
  );

  it.each(['PURCHASE', 'AUTHORIZE'])('an operation on a %s is claimed', async (type) => {
    const payment = await payments.pay();
    await set(`type = '${type}'`);
    expect((await claim(asked(payment))).stored.base).toMatchObject({ type, id: payment.transactions?.id });
  });

  it('a payment that is disputed accepts no operation until the dispute is won', async () => {
    const payment = await payments.pay();
    await add(payment, 'PENDING', 'CHARGEBACK');
    await expectRefused(asked(payment), /^the payment is in dispute/);
    await payments.tables.query("UPDATE transaction SET status = 'DECLINED' WHERE type = 'CHARGEBACK'");
    expect((await claim(asked(payment))).written.type).toBe('REFUND');
  });

  it('a payment accepts operations only through its own account at the provider', async () => {
    const payment = await payments.pay();
    const { connection } = payments.provider;
    const at = (connections: ReadonlyMap<string, typeof connection>) =>
      claim(asked(payment), undefined, { connections: () => connections });
    const another = new Map([['ledger', { ...connection, identity: 'another account' }]]);
    for (const connections of [new Map(), another]) {
      await expect(at(connections)).rejects.toMatchObject({ reason: 'SERVICE_UNAVAILABLE', retryAfterS: 1 });
    }
    expect((await at(new Map([['ledger', connection]]))).stored.connection).toBe(connection);
  });
});

describe('a cancel without a key', () => {
  const KEYLESS = 'without a key';
  /** Claims a cancel of an authorization that has another transaction. */
  async function cancelBeside(type: string, status: string, key: string) {
    const payment = await payments.pay({ capture: false });
    const id = randomUUID();
    await payments.tables.query(
      `INSERT INTO transaction (id, account_id, payment_id, connection_id, connection_identity, status, amount_minor_units,
         currency, capture, final, type, parent_id)
       VALUES ($1, $2, $3, 'ledger', 'ledger', $4, 100, 'USD', false, true, $5, $6)`,
      [id, ACCOUNT_ONE, payment.id, status, type, payment.transactions?.id],
    );
    const keyed = { accountId: ACCOUNT_ONE, idempotencyKey: key === KEYLESS ? undefined : key };
    const requested = { ...asked(payment, { needsKey: false }, 'CANCEL'), ...keyed };
    return { id, claimed: await claimOperationOn(payments.deps, requested) };
  }

  it.each(['SUCCEEDED', 'PENDING'])(
    'a cancel without a key is replayed if the first cancel was %s',
    async (status) => {
      const { id, claimed } = await cancelBeside('CANCEL', status, KEYLESS);
      expect(claimed).toEqual({ currentCancel: id });
    },
  );

  it.each([
    ['a declined cancel', 'CANCEL', 'DECLINED', KEYLESS],
    ['a capture', 'CAPTURE', 'SUCCEEDED', KEYLESS],
    ['a successful cancel that has a key', 'CANCEL', 'SUCCEEDED', 'a key'],
  ])('a cancel without a key is not a replay of %s', async (_what, type, status, key) => {
    const { claimed } = await cancelBeside(type, status, key);
    expect(claimed).toMatchObject({ written: { type: 'CANCEL' } });
  });
});
