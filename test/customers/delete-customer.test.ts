import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { deleteCustomer } from '#src/customers/delete-customer.ts';
import { type Claim, claimPayment } from '#src/store/engine/claim-payment.ts';
import { type Database, queriesOf, type Run } from '#src/store/engine/database.ts';
import { writeChange } from '#src/store/engine/grouped-writes.ts';
import type { StoredChange } from '#src/store/engine/write-change.ts';
import { insertNewCustomer, lockCustomer } from '#src/store/tables/customers.ts';
import { findStoredObjects } from '#src/store/tables/stored-objects.ts';
import { attemptToClaim, changeOf } from '../support/claimed-rows.ts';
import { database, databaseUrl, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { lockWaits } from '../support/tables.ts';

onOwnDatabase({ empties: 'payment, transaction, vaulted_token, webhook, event' });

/** The connection on which the test holds a transaction open. */
let held: pg.Client;
/** The database within the open transaction. */
let within: Database;
let customer: string;

beforeAll(async () => {
  held = new pg.Client(databaseUrl());
  await held.connect();
  const run: Run = (text, values) => held.query(text, values as unknown[]);
  within = { ...database, ...queriesOf(run), transaction: (work) => work(run) };
});
afterAll(() => held?.end());
afterEach(() => held.query('ROLLBACK'));
beforeEach(async () => {
  customer = randomUUID();
  await database.transaction((run) =>
    insertNewCustomer(run, {
      ...{ accountId: ACCOUNT_ONE, id: customer, merchantCustomerId: customer },
      ...{ payer: Buffer.from('a person'), metadata: '[]' },
    }),
  );
  await held.query('BEGIN');
});

/** Returns the claim for a payment that stores its card for the customer. */
function keepingClaim(): Claim {
  const { claim } = attemptToClaim({ vault: true });
  return { ...claim, customerId: customer };
}
/** Returns the change that approves the payment and stores the card. */
function keepingChange({ paymentId, transactionId, vault }: Claim): StoredChange {
  const token = vault?.token ?? '';
  const method = { token, fate: 'keep', at: '2026-01-31T09:08:07Z', record: Buffer.from('a card') } as const;
  return changeOf({ paymentId, transactionId }, 'SUCCEEDED', { method });
}
const WRITTEN = { kind: 'written', earlier: undefined };
const remove = (on: Database) => deleteCustomer({ database: on }, ACCOUNT_ONE, customer);
const cards = () => tables.query('SELECT status, active, card_number FROM vaulted_token');
const oneWaits = () => expect.poll(() => lockWaits(tables)).toBe(1);

describe('deleting a customer while a payment that stores a card is claimed', () => {
  it('deleting a customer waits for the claim of a payment, and erases the card that the claim stored', async () => {
    await claimPayment(within, keepingClaim());
    const removed = remove(database);
    await oneWaits();
    await held.query('COMMIT');
    await removed;
    expect(await cards()).toEqual([{ status: 'UNENROLLED', active: false, card_number: null }]);
  });

  it('a payment claimed during the deletion of its customer is made without storing the card', async () => {
    const claim = keepingClaim();
    await remove(within);
    const claimed = claimPayment(database, claim);
    await oneWaits();
    await held.query('COMMIT');
    expect(await claimed).toBe(true);
    expect(await cards()).toEqual([]);
    expect(await writeChange(database, keepingChange(claim))).toMatchObject(WRITTEN);
    expect(await cards()).toEqual([]);
  });

  const wantEnrollments = () =>
    tables.query(
      `INSERT INTO webhook (account_id, id, url, description, events, secret)
       VALUES ($1, $2, 'http://127.0.0.1:1', '', '{enrollment.enroll,enrollment.unenroll}', '')`,
      [ACCOUNT_ONE, randomUUID()],
    );

  it('deleting a customer while a card is stored emits an enrollment and then an unenrollment', async () => {
    await wantEnrollments();
    const claim = keepingClaim();
    await claimPayment(database, claim);
    await writeChange(within, keepingChange(claim));
    const removed = remove(database);
    await oneWaits();
    await held.query('COMMIT');
    await removed;
    expect(await cards()).toEqual([{ status: 'UNENROLLED', active: false, card_number: null }]);
    const events = await tables.query('SELECT type FROM event ORDER BY id');
    expect(events.map(({ type }) => type)).toEqual(['enrollment.enroll', 'enrollment.unenroll']);
  });

  it('a card whose customer is deleted just before the approval is not stored, and emits no event', async () => {
    await wantEnrollments();
    const claim = keepingClaim();
    await claimPayment(database, claim);
    await remove(within);
    const written = writeChange(database, keepingChange(claim));
    await oneWaits();
    await held.query('COMMIT');
    expect(await written).toMatchObject(WRITTEN);
    expect(await cards()).toEqual([{ status: 'UNENROLLED', active: false, card_number: null }]);
    expect(await tables.query('SELECT type FROM event')).toEqual([]);
  });

  it('updating a customer does not block the claim of a payment that stores a card', async () => {
    await held.query('SELECT 1 FROM customer WHERE account_id = $1 AND id = $2 FOR NO KEY UPDATE', [
      ...[ACCOUNT_ONE, customer],
    ]);
    await claimPayment(database, keepingClaim());
    await held.query('COMMIT');
    expect(await cards()).toEqual([{ status: 'ENROLLED', active: false, card_number: 'sealed' }]);
  });
});

describe('deleting a customer while a payment with a stored card is accepted', () => {
  const method = randomUUID();
  const found = () =>
    findStoredObjects(database, ACCOUNT_ONE, { customerId: customer, vaultedToken: method });

  it('a payment that has read a stored card succeeds even if the card is then deleted, but later payments cannot use it', async () => {
    await tables.query(
      `INSERT INTO vaulted_token (account_id, customer_id, id, type, card, card_number, active)
       VALUES ($1, $2, $3, 'CARD', 'a card', 'sealed', true)`,
      [ACCOUNT_ONE, customer, method],
    );
    expect((await found()).vaultedToken?.card?.number).toBe('sealed');
    await remove(database);
    const claim: Claim = { ...attemptToClaim().claim, storedMethod: method };
    expect(await claimPayment(database, claim)).toBe(true);
    const keeps = { token: method, fate: 'keep', at: '2026-01-31T09:08:07Z', record: undefined } as const;
    const change = { ...keepingChange(claim), method: keeps };
    expect(await writeChange(database, change)).toMatchObject(WRITTEN);
    expect(await cards()).toEqual([{ status: 'UNENROLLED', active: false, card_number: null }]);
    expect(await found()).toEqual({ customer: undefined, vaultedToken: undefined });
  });
});

describe('deleting a customer while a call adds a method', () => {
  const add = (on: Database) => on.transaction((run) => lockCustomer(run, ACCOUNT_ONE, customer));

  it('deleting a customer waits for a call that adds a method', async () => {
    expect(await add(within)).toMatchObject({ id: customer });
    const removed = remove(database);
    await oneWaits();
    await held.query('COMMIT');
    await removed;
  });

  it('a call that adds a method does not find a customer who was deleted just before', async () => {
    await remove(within);
    const added = add(database);
    await oneWaits();
    await held.query('COMMIT');
    expect(await added).toBeUndefined();
  });
});
