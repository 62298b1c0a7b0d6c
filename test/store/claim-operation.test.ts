import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { claimOperation, type OperationClaim } from '#src/store/engine/claim-operation.ts';
import { isKeyTaken } from '#src/store/engine/database-error.ts';
import { addBystanders } from '../support/bystanders.ts';
import { approvedPayment, operationClaimOf as claimOf } from '../support/claimed-rows.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { earlier } from '../support/tables.ts';

const LEASE_S = 60;

onOwnDatabase({ empties: 'payment, transaction, vaulted_token, webhook, event' });

const approved = (set?: Parameters<typeof approvedPayment>[2]) => approvedPayment(database, tables, set);
const paymentRow = async () => (await tables.query('SELECT * FROM payment'))[0];
const everything = async () => [
  await tables.query('SELECT * FROM payment ORDER BY id'),
  await tables.query('SELECT * FROM transaction ORDER BY id'),
];

describe('claiming an operation', () => {
  it('claiming an operation opens it, inserts its transaction with a lease, and affects no other payment', async () => {
    const base = await approved({ payment: `updated_at = ${earlier('created_at', '1 s')}` });
    const claim = claimOf(base, { status: 'CLAIMED' });
    const others = await addBystanders(tables, base.paymentId);
    expect(await claimOperation(database, claim)).toBe(true);
    await others.expectUntouched();
    const row = (table: string, id: string) =>
      tables.query(`SELECT * FROM ${table} WHERE account_id = $1 AND id = $2`, [ACCOUNT_ONE, id]);
    expect(await row('payment', base.paymentId)).toMatchObject([
      {
        open_operation: claim.transactionId,
        version: 2,
        status: 'CLAIMED',
        record: Buffer.from('claimed'),
        response_record: Buffer.from('approved'),
      },
    ]);
    const [payment] = await row('payment', base.paymentId);
    const [transaction] = await row('transaction', claim.transactionId);
    expect(payment?.updated_at).toEqual(transaction?.created_at);
    expect(transaction).toMatchObject({
      payment_id: base.paymentId,
      type: 'CAPTURE',
      parent_id: base.transactionId,
      connection_id: 'scripted',
      connection_identity: 'scripted account',
      status: 'PENDING',
      amount_minor_units: '575',
      currency: 'USD',
      capture: false,
      final: true,
      method: 'CapturePayment',
      idempotency_key: claim.idempotencyKey,
      request_hash: Buffer.from('hash'),
      request_shape: Buffer.from('shape'),
      merchant_reference: 'reference',
      awaits_payer: false,
      fence: 0,
    });
    expect(Number(transaction?.check_at) - Number(transaction?.created_at)).toBe(LEASE_S * 1000);
  });

  it('a claim of an operation keeps the record of the first response, and stores none for a payment without a response', async () => {
    const base = await approved({ payment: "response_record = 'first'" });
    await claimOperation(database, claimOf(base));
    expect((await paymentRow())?.response_record).toEqual(Buffer.from('first'));
    await tables.query('UPDATE payment SET open_operation = NULL, response = NULL');
    await claimOperation(database, claimOf(base, { version: 2, merchantReference: 'another' }));
    expect((await paymentRow())?.response_record).toBeNull();
  });

  const ALL = 5_575n;
  const PURCHASE = { base: 'capture = true' };
  const CLOSE = { type: 'CANCEL', isFinal: false } as const;
  const AWAITED = { base: "status = 'PENDING', awaits_payer = true" };
  it.each<[boolean, string, Partial<OperationClaim>, { payment?: string; base?: string }]>([
    [true, 'captures the whole amount', { minorUnits: ALL }, {}],
    [false, 'captures more than the whole amount', { minorUnits: ALL + 1n }, {}],
    [true, 'captures what is left', { minorUnits: 575n }, { payment: 'captured_minor_units = 5000' }],
    [false, 'captures more than is left', { minorUnits: 576n }, { payment: 'captured_minor_units = 5000' }],
    [false, 'captures a purchase', {}, PURCHASE],
    [false, 'captures what was released', {}, { payment: 'released = true' }],
    [true, 'cancels all', { type: 'CANCEL' }, {}],
    [true, 'cancels the rest', { type: 'CANCEL' }, { payment: 'captured_minor_units = 5574' }],
    [false, 'cancels nothing', { type: 'CANCEL' }, { payment: 'captured_minor_units = 5575' }],
    [false, 'cancels a purchase', { type: 'CANCEL' }, PURCHASE],
    [false, 'cancels what was released', { type: 'CANCEL' }, { payment: 'released = true' }],
    [
      true,
      'closes a payment that is shown as created',
      CLOSE,
      { base: "status = 'CREATED', awaits_payer = true" },
    ],
    [true, 'closes a payment whose payer is challenged', CLOSE, AWAITED],
    [false, 'closes a payment whose payer has acted', CLOSE, { base: "status = 'PENDING'" }],
    [false, 'closes a payment that is paid', CLOSE, { base: 'awaits_payer = true' }],
    [false, 'cancels a payment whose payer has yet to act', { type: 'CANCEL' }, AWAITED],
    [false, 'captures a payment whose payer has yet to act', { isFinal: false }, AWAITED],
    [true, 'refunds a purchase', { type: 'REFUND', minorUnits: ALL }, PURCHASE],
    [false, 'refunds more than a purchase', { type: 'REFUND', minorUnits: ALL + 1n }, PURCHASE],
    [
      false,
      'refunds more than is left',
      { type: 'REFUND', minorUnits: 76n },
      { ...PURCHASE, payment: 'refunded_minor_units = 5500' },
    ],
    [
      true,
      'refunds what was captured',
      { type: 'REFUND', minorUnits: 500n },
      { payment: 'captured_minor_units = 500' },
    ],
    [
      false,
      'refunds more than was captured',
      { type: 'REFUND', minorUnits: 501n },
      { payment: 'captured_minor_units = 500' },
    ],
    [false, 'refunds a missing transaction', { type: 'REFUND', parentId: randomUUID() }, PURCHASE],
    [false, 'has an unknown type', { type: 'GIVE_AWAY' as 'REFUND' }, {}],
    [false, 'is based on an older version', {}, { payment: 'version = 2' }],
    [false, 'finds an open operation', {}, { payment: `open_operation = '${randomUUID()}'` }],
    [false, 'acts on a declined transaction', {}, { base: "status = 'DECLINED'" }],
    [false, 'acts on a missing transaction', { baseId: randomUUID() }, {}],
  ])('a claim of an operation returns %j when it %s', async (isClaimed, _what, changes, set) => {
    const base = await approved(set);
    const before = await everything();
    expect(await claimOperation(database, claimOf(base, changes))).toBe(isClaimed);
    if (!isClaimed) expect(await everything()).toEqual(before);
  });

  it('a claim of an operation returns false if its reference was used before for the same payment and method', async () => {
    const base = await approved();
    await claimOperation(database, claimOf(base, { isFinal: false }));
    await tables.query(
      "UPDATE payment SET open_operation = NULL; UPDATE transaction SET status = 'DECLINED' WHERE parent_id IS NOT NULL",
    );
    const before = await everything();
    const again = { version: 2, isFinal: false };
    expect(await claimOperation(database, claimOf(base, again))).toBe(false);
    expect(await everything()).toEqual(before);
    const others = [
      { method: 'CancelOrRefundPayment' },
      { merchantReference: 'another' },
      { merchantReference: undefined },
    ];
    for (const [i, other] of others.entries()) {
      await tables.query('UPDATE payment SET open_operation = NULL');
      const claim = claimOf(base, { ...again, version: i + 2, ...other });
      expect(await claimOperation(database, claim)).toBe(true);
    }
    // Another payment may use the same reference.
    expect(await claimOperation(database, claimOf(await approved()))).toBe(true);
  });

  it('a claim of an operation on a transaction of another payment returns false', async () => {
    const [one, other] = [await approved(), await approved()];
    expect(await claimOperation(database, claimOf(one, { baseId: other.transactionId }))).toBe(false);
    await tables.query('UPDATE transaction SET capture = true');
    const refund = claimOf(one, { type: 'REFUND', parentId: other.transactionId });
    expect(await claimOperation(database, refund)).toBe(false);
  });

  it('a claim on a declined transaction returns false, even if another account’s transaction has succeeded', async () => {
    const base = await approved();
    await addBystanders(tables, base.paymentId);
    await tables.query("UPDATE transaction SET status = 'DECLINED' WHERE account_id = $1", [ACCOUNT_ONE]);
    expect(await claimOperation(database, claimOf(base))).toBe(false);
  });

  it('refunds of a capture are limited to its amount, regardless of the payment’s other captures', async () => {
    const base = await approved({ payment: 'captured_minor_units = 2000' });
    const [first, second] = [randomUUID(), randomUUID()];
    const insert = async (id: string, type: string, parent: string, status: string, amount: number) =>
      tables.query(
        `INSERT INTO transaction (id, account_id, payment_id, connection_id, connection_identity, status,
           amount_minor_units, currency, capture, type, parent_id)
         VALUES ($1, $2, $3, 'scripted', 'scripted', $4, $5, 'USD', false, $6, $7)`,
        [id, ACCOUNT_ONE, base.paymentId, status, amount, type, parent],
      );
    await insert(first, 'CAPTURE', base.transactionId, 'SUCCEEDED', 1_000);
    await insert(second, 'CAPTURE', base.transactionId, 'SUCCEEDED', 1_000);
    await insert(randomUUID(), 'REFUND', first, 'SUCCEEDED', 300);
    await insert(randomUUID(), 'REFUND', first, 'PENDING', 200);
    await insert(randomUUID(), 'REFUND', first, 'DECLINED', 400);
    await insert(randomUUID(), 'REFUND', second, 'SUCCEEDED', 900);
    await insert(randomUUID(), 'CAPTURE', first, 'SUCCEEDED', 450);
    await addBystanders(tables, base.paymentId);
    const refund = (minorUnits: bigint) =>
      claimOperation(database, claimOf(base, { type: 'REFUND', parentId: first, minorUnits }));
    expect(await refund(501n)).toBe(false);
    expect(await refund(500n)).toBe(true);
    const claimed = 'SELECT parent_id FROM transaction WHERE account_id = $1 AND amount_minor_units = 500';
    expect(await tables.query(claimed, [ACCOUNT_ONE])).toEqual([{ parent_id: first }]);
  });

  it('a claim with a key that is already used is refused and changes nothing', async () => {
    const [one, other] = [await approved(), await approved()];
    const held = claimOf(one);
    await claimOperation(database, held);
    const before = await everything();
    const again = claimOf(other, { idempotencyKey: held.idempotencyKey });
    expect(isKeyTaken(await claimOperation(database, again).catch((error: Error) => error))).toBe(true);
    expect(await everything()).toEqual(before);
    expect(await claimOperation(database, { ...again, method: 'RefundPayment' })).toBe(true);
  });
});
