import { describe, expect, it } from 'vitest';
import { countOpenAttempts, countOpenLater } from '#src/store/engine/checks.ts';
import { writeChange } from '#src/store/engine/grouped-writes.ts';
import { changeOf, claimAttempt, OPEN } from '../support/claimed-rows.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';
import { earlier } from '../support/tables.ts';

onOwnDatabase({ empties: 'payment, transaction' });

describe('counting open attempts', () => {
  it('open attempts are counted per connection and account, with the number due and the greatest age', async () => {
    expect(await countOpenAttempts(database, 100)).toEqual([]);
    const old = await claimAttempt(database);
    await claimAttempt(database, { leaseS: 60 });
    await claimAttempt(database, { identity: 'another account' });
    await claimAttempt(database, { connectionId: 'second', leaseS: 60 });
    await tables.query(
      `UPDATE transaction SET created_at = ${earlier('created_at', '1 hour')} WHERE id = $1`,
      [old.transactionId],
    );
    const counted = await countOpenAttempts(database, 100);
    expect(counted).toMatchObject([
      { connectionId: 'scripted', identity: 'another account', open: 1, due: 1 },
      { connectionId: 'scripted', identity: 'scripted', open: 2, due: 1 },
      { connectionId: 'second', identity: 'scripted', open: 1, due: 0 },
    ]);
    expect(counted[1]?.oldestS).toBeGreaterThan(3_599);
    expect(counted[1]?.oldestS).toBeLessThan(3_700);
  });

  it('attempts whose call has ended count as due, but operations and attempts that await the payer do not', async () => {
    const open = await claimAttempt(database, { leaseS: 60 });
    await writeChange(database, changeOf(open, 'PENDING', OPEN));
    expect(await countOpenAttempts(database, 100)).toMatchObject([{ open: 1, due: 1 }]);
    for (const set of ["type = 'REFUND'", 'awaits_payer = true', 'check_at = NULL', "status = 'SUCCEEDED'"]) {
      const { transactionId } = await claimAttempt(database);
      await tables.query(`UPDATE transaction SET ${set} WHERE id = $1`, [transactionId]);
    }
    expect(await countOpenAttempts(database, 100)).toMatchObject([{ open: 1, due: 1 }]);
  });

  it('the count of open attempts stops at its limit', async () => {
    for (let i = 0; i < 5; i++) await claimAttempt(database);
    expect(await countOpenAttempts(database, 3)).toMatchObject([{ open: 3 }]);
  });
});

describe('counting transactions that stay open after their call', () => {
  const count = async (limit = 10) =>
    (await countOpenLater(database, limit)).map(({ type, open }) => `${type} ${open}`).sort();
  const add = async (set: string) => {
    const { transactionId } = await claimAttempt(database, { leaseS: 60 });
    await tables.query(`UPDATE transaction SET ${set} WHERE id = $1`, [transactionId]);
  };

  it('attempts that await their payer and open operations are counted, up to a limit', async () => {
    expect(await count()).toEqual([]);
    await add('awaits_payer = true');
    await add("type = 'REFUND'");
    // An attempt whose call has no outcome, an authorization, and an attempt without another check.
    await add('fence = 1');
    await add("awaits_payer = true, status = 'SUCCEEDED'");
    await add('awaits_payer = true, check_at = NULL');
    expect(await count()).toEqual(['PURCHASE 1', 'REFUND 1']);
    await add('awaits_payer = true');
    expect(await count()).toEqual(['PURCHASE 2', 'REFUND 1']);
    expect(await count(1)).toEqual(['PURCHASE 1', 'REFUND 1']);
  });

  it('the count includes the age of the oldest open transaction', async () => {
    await add(`type = 'REFUND', created_at = ${earlier('created_at', '1 hour')}`);
    await add("type = 'REFUND'");
    const [refunds] = await countOpenLater(database, 10);
    expect(refunds?.oldestS).toBeGreaterThan(3_599);
    expect(refunds?.oldestS).toBeLessThan(3_700);
  });
});
