import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { signIn } from '../support/dashboard.ts';
import { createTestDatabase } from '../support/database.ts';
import { endAfterEach, startService } from '../support/service-process.ts';
import {
  pageAfter,
  payoutLine,
  reportLine,
  sandboxReport,
  sendReport,
} from '../support/settlement-reports.ts';
import { openTables } from '../support/tables.ts';

endAfterEach();

it.each([
  ['killed', 'SIGKILL', null],
  ['told to stop', 'SIGTERM', 0],
] as const)(
  'a report whose service is %s after the page came is matched by the next',
  async (_name, signal, code) => {
    const { url, drop } = await createTestDatabase();
    const key = randomBytes(32).toString('base64');
    const environment = {
      ...{ DATABASE_URL: url, ALLOW_UNSAFE_DATABASE: 'on', SANDBOX: 'on', OPERATOR_KEYS: key },
      ...{ HASH_KEY: key, VAULT_KEYS: `one:${key}` },
    };
    const tables = await openTables(url);
    const first = await startService(environment);
    await tables.query('BEGIN');
    await tables.query('LOCK TABLE settlement_difference IN EXCLUSIVE MODE');
    const operator = await signIn(first, key);
    const report = sandboxReport(reportLine(''), reportLine(''), payoutLine('-18.82'));
    const response = await sendReport(first, operator, report);
    expect(await pageAfter(response, operator.get)).toContain('3 new, 0 repeated; matching: 0 of 3 lines.');
    first.child.kill(signal);
    if (signal === 'SIGKILL') await first.ended;
    await tables.query('ROLLBACK');
    expect((await first.ended).code).toBe(code);
    const due = 'SELECT imports > matched_imports AS due FROM settlement_progress';
    expect(await tables.query(due)).toEqual([{ due: true }]);
    // The process that ended still has its lease.
    await tables.query('UPDATE settlement_progress SET leased_until = now()');
    const second = await startService(environment);
    const { get } = await signIn(second, key);
    await expect
      .poll(() => pageAfter(response, get), { timeout: 20_000 })
      .toContain('of the new lines, 0 matched, 2 of unknown payments');
    const kinds = await tables.query('SELECT kind FROM settlement_difference');
    expect(kinds).toEqual([{ kind: 'unknown_line' }, { kind: 'unknown_line' }]);
    await tables.close();
    second.child.kill('SIGKILL');
    await second.ended;
    await drop();
  },
);
