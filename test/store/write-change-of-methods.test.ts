import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { writeChange } from '#src/store/engine/grouped-writes.ts';
import { addBystanders } from '../support/bystanders.ts';
import {
  type ChangeOptions,
  changeOf,
  claimAttempt,
  OPEN,
  type OpenAttempt,
} from '../support/claimed-rows.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE, ACCOUNT_TWO } from '../support/payment-requests.ts';
import { wantEveryEvent } from '../support/tables.ts';

onOwnDatabase({
  empties: 'payment, transaction, vaulted_token, checkout_session, single_use, webhook, event',
});

const write = (attempt: OpenAttempt, options: ChangeOptions) =>
  writeChange(database, changeOf(attempt, 'DONE', options));

const AT = '2026-01-31T09:08:07.000Z';
const keep = (token: string, record?: Uint8Array) => ({ token, fate: 'keep', at: AT, record }) as const;
const drop = (token: string) => ({ token, fate: 'drop' }) as const;
const tokenOf = ({ vaultedToken = '' }: OpenAttempt) => vaultedToken;
const withCard = () => claimAttempt(database, { vault: true });
const setCards = (columns: string) =>
  tables.query(`UPDATE vaulted_token SET ${columns} WHERE account_id = $1`, [ACCOUNT_ONE]);

describe('the card that awaits an outcome', () => {
  const cardOf = async (attempt: OpenAttempt) =>
    (
      await tables.query(
        'SELECT active, last_used_at, updated_at FROM vaulted_token WHERE id = $1 AND account_id = $2',
        [tokenOf(attempt), ACCOUNT_ONE],
      )
    )[0];

  it.each(['keep', 'drop', 'wait'] as const)(
    'the outcome can %s a card, and affects no other card',
    async (fate) => {
      const [attempt] = [await withCard(), await withCard()];
      const others = await addBystanders(tables, attempt.paymentId);
      const untouched = await tables.query('SELECT * FROM vaulted_token WHERE id <> $1 ORDER BY id', [
        tokenOf(attempt),
      ]);
      const method = { keep: keep(tokenOf(attempt)), drop: drop(tokenOf(attempt)), wait: undefined }[fate];
      await write(attempt, { method });
      const used = { active: true, last_used_at: new Date(AT), updated_at: new Date(AT) };
      const waits = { active: false, last_used_at: null };
      const expected = { keep: used, drop: undefined, wait: expect.objectContaining(waits) }[fate];
      expect(await cardOf(attempt)).toEqual(expected);
      await others.expectUntouched();
      const left = await tables.query('SELECT * FROM vaulted_token WHERE id <> $1 ORDER BY id', [
        tokenOf(attempt),
      ]);
      expect(left).toEqual(untouched);
    },
  );

  it('an event is written when a card is kept, but not when it is used again', async () => {
    await wantEveryEvent(tables);
    const attempt = await withCard();
    const method = keep(tokenOf(attempt), Buffer.from('the kept card'));
    const event = undefined;
    // The result reports only the payment's event; the relay finds the card's event in its next search.
    expect(await write(attempt, { ...OPEN, event, method })).toMatchObject({ kind: 'written' });
    await write(attempt, { version: 1, fence: 1, event, method });
    expect(await tables.query('SELECT account_id, type, sequence, record FROM event')).toEqual([
      {
        account_id: ACCOUNT_ONE,
        type: 'enrollment.enroll',
        sequence: 0,
        record: Buffer.from('the kept card'),
      },
    ]);
  });

  it.each([
    ['no webhook subscribes to the event', "UPDATE webhook SET events = '{payment.purchase}'"],
    ['the webhook is turned off', 'UPDATE webhook SET active = false'],
    ['the webhook is another account’s', `UPDATE webhook SET account_id = '${ACCOUNT_TWO}'`],
    ['the card was unenrolled before', "UPDATE vaulted_token SET status = 'UNENROLLED'"],
  ])('keeping a card writes no event if %s', async (_what, happens) => {
    await wantEveryEvent(tables);
    const attempt = await withCard();
    await tables.query(happens);
    await write(attempt, { event: undefined, method: keep(tokenOf(attempt), Buffer.from('kept')) });
    expect(await tables.query('SELECT FROM event')).toEqual([]);
  });

  it.each([
    ['in use', 'active = true'],
    ['ended', "status = 'UNENROLLED'"],
  ])('a card that is %s is never dropped', async (_what, set) => {
    const attempt = await withCard();
    await setCards(set);
    const before = await tables.query('SELECT * FROM vaulted_token');
    await write(attempt, { method: drop(tokenOf(attempt)) });
    expect(await tables.query('SELECT * FROM vaulted_token')).toEqual(before);
  });

  it('an unenrolled card is not kept', async () => {
    const attempt = await withCard();
    await setCards("status = 'UNENROLLED'");
    const before = await tables.query('SELECT * FROM vaulted_token');
    expect(await write(attempt, { method: keep(tokenOf(attempt)) })).toMatchObject({ kind: 'written' });
    expect(await tables.query('SELECT * FROM vaulted_token')).toEqual(before);
  });
});

describe('the checkout session of a payment', () => {
  const use = (account: string, object: string, payment: string) =>
    tables.query('INSERT INTO single_use (account_id, object_id, payment_id) VALUES ($1, $2, $3)', [
      ...[account, object, payment],
    ]);
  const uses = async () =>
    new Set(await tables.query('SELECT account_id, object_id, payment_id FROM single_use'));
  const useOf = (account_id: string, object_id: string, payment_id: string) => ({
    ...{ account_id, object_id, payment_id },
  });
  /** Adds a session of account one that shows a payment. */
  async function sessionOf(paymentId: string, expiresAt: string | null = '2999-01-01'): Promise<string> {
    const id = randomUUID();
    await tables.query(
      'INSERT INTO checkout_session (account_id, id, payment_id, expires_at, payments) VALUES ($1, $2, $3, $4, 1)',
      [ACCOUNT_ONE, id, paymentId, expiresAt],
    );
    return id;
  }
  const shown = async (session: string) =>
    (await tables.query('SELECT payment_id FROM checkout_session WHERE id = $1', [session]))[0]?.payment_id;

  it('reopening a session removes its use by the payment itself, but no other use', async () => {
    const [attempt, other] = [await claimAttempt(database), await claimAttempt(database)];
    const [session, beside, others] = [randomUUID(), randomUUID(), randomUUID()];
    await use(ACCOUNT_ONE, session, attempt.paymentId);
    await use(ACCOUNT_TWO, session, attempt.paymentId);
    await use(ACCOUNT_ONE, beside, attempt.paymentId);
    await use(ACCOUNT_ONE, others, other.paymentId);
    expect(await write(attempt, { ...OPEN, reopens: others })).toMatchObject({ kind: 'written' });
    expect(await write(attempt, { version: 1, fence: 1, reopens: session })).toMatchObject({
      kind: 'written',
    });
    expect(await uses()).toEqual(
      new Set([
        useOf(ACCOUNT_TWO, session, attempt.paymentId),
        useOf(ACCOUNT_ONE, beside, attempt.paymentId),
        useOf(ACCOUNT_ONE, others, other.paymentId),
      ]),
    );
  });

  it('a payment that succeeded late uses its session, which then shows the payment', async () => {
    const [attempt, other] = [await claimAttempt(database), await claimAttempt(database)];
    const [session, beside] = [await sessionOf(other.paymentId), await sessionOf(other.paymentId)];
    expect(await write(attempt, { retakes: session })).toMatchObject({ kind: 'written' });
    expect(await uses()).toEqual(new Set([useOf(ACCOUNT_ONE, session, attempt.paymentId)]));
    expect([await shown(session), await shown(beside)]).toEqual([attempt.paymentId, other.paymentId]);
  });

  it('a session that a second payment retakes still shows the first payment, which can no longer reopen it', async () => {
    const [attempt, other] = [await claimAttempt(database), await claimAttempt(database)];
    const session = await sessionOf(other.paymentId);
    await use(ACCOUNT_ONE, session, other.paymentId);
    expect(await write(attempt, { retakes: session })).toMatchObject({ kind: 'written' });
    expect(await uses()).toEqual(new Set([useOf(ACCOUNT_ONE, session, attempt.paymentId)]));
    expect(await shown(session)).toBe(other.paymentId);
    expect(await write(other, { reopens: session })).toMatchObject({ kind: 'written' });
    expect(await uses()).toEqual(new Set([useOf(ACCOUNT_ONE, session, attempt.paymentId)]));
  });

  it('a session without terms, or one that does not exist, is not used', async () => {
    const attempt = await claimAttempt(database);
    const session = await sessionOf(randomUUID(), null);
    await write(attempt, { ...OPEN, retakes: session });
    await write(attempt, { version: 1, fence: 1, retakes: randomUUID() });
    expect(await uses()).toEqual(new Set());
    expect(await shown(session)).not.toBe(attempt.paymentId);
  });
});
