import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { run } from '#src/commands/settlement.ts';
import { FAKE_API_KEY, startFakeStripe } from '../connectors/stripe/fake-stripe.ts';
import { databaseUrl, onOwnDatabase, tables } from '../support/own-database.ts';
import { runCommand } from '../support/run-command.ts';

const directory = mkdtempSync(join(tmpdir(), 'payments-settlement-'));
afterAll(() => rmSync(directory, { recursive: true }));
onOwnDatabase({});

const stripe = await startFakeStripe();
afterAll(() => stripe.close());

const CATALOGUE = `
payment_method_types: [{ type: CARD, category: CARD, workflows: [DIRECT] }]
connections:
  - id: s
    name: Stripe
    provider_id: STRIPE
    connector: stripe
    settings: { base_url: '${stripe.url}' }
    secrets_from_environment: { api_key: STRIPE_KEY }
  - id: a
    name: Adyen
    provider_id: ADYEN
    connector: adyen
    settings: { base_url: 'https://checkout-test.adyen.com', merchant_account: Shop }
    secrets_from_environment: { api_key: ADYEN_KEY, hmac_key: ADYEN_HMAC_KEY }
routes:
  - { id: 1, name: All, targets: [{ connection: s }] }
`;
const write = (name: string, text: string) => {
  writeFileSync(join(directory, name), text);
  return join(directory, name);
};
const catalogue = write('catalogue.yaml', CATALOGUE);
const REPORT = `balance_transaction_id,created_utc,currency,gross,fee,net,reporting_category,source_id,payment_intent_id,automatic_payout_id
txn_1,2026-09-30 10:00:00,usd,12.00,0.65,11.35,charge,ch_1,pi_1,po_1
`;
const SECRETS = { STRIPE_KEY: FAKE_API_KEY, ADYEN_KEY: 'key', ADYEN_HMAC_KEY: 'A'.repeat(64) };
const key = randomBytes(32).toString('base64');
const KEYS = { VAULT_KEYS: `one:${key}`, HASH_KEY: key };
const command = (...args: string[]) =>
  runCommand(run, { DATABASE_URL: databaseUrl(), CATALOGUE_FILE: catalogue, ...SECRETS, ...KEYS }, ...args);

it('the settlement command imports a report once, and says what its lines settle', async () => {
  const report = write('report.csv', REPORT);
  const text = '0 matched, 1 of unknown payments, 0 ambiguous\n';
  expect(await command('import', report, '--connection', 's')).toMatchObject({
    ...{ code: 0, stdout: `report.csv: 1 new lines, 0 repeated; ${text}` },
  });
  expect(await command('import', report, '--connection', 's')).toMatchObject({
    ...{ code: 0, stdout: expect.stringContaining('report.csv: it was imported before; ') },
  });
  expect(await tables.query('SELECT line_key, result FROM settlement_line')).toEqual([
    { line_key: 'txn_1', result: 'unmatched' },
  ]);
});

it('differences are listed, resolved with a note and opened again', async () => {
  const own = ['unknown_line', 'txn_1', '--connection', 's', '--note', 'an old payment'];
  const list = async () => (await command('differences', '--connection', 's')).stdout;
  expect(await list()).toMatch(/Z open unknown_line txn_1: a payment with the provider's id pi_1\n$/);
  expect(await command('resolve', ...own)).toMatchObject({ code: 0 });
  expect(await list()).toContain('Z resolved unknown_line txn_1');
  expect(await command('reopen', ...own)).toMatchObject({ code: 0 });
  expect(await list()).toContain('Z open unknown_line txn_1');
  expect(await command('resolve', 'unknown_line', 'txn_2', ...own.slice(2))).toMatchObject({ code: 1 });
  expect(
    await tables.query("SELECT action, detail FROM audit_log WHERE action LIKE 're%' ORDER BY id"),
  ).toEqual([
    { action: 'resolve-difference', detail: 'unknown_line: an old payment' },
    { action: 'reopen-difference', detail: 'unknown_line: an old payment' },
  ]);
});

it('the settlement command fetches a report at Stripe, and the lines of a file that was imported before stay', async () => {
  const [header = '', cells = ''] = REPORT.trim().split('\n');
  const line = Object.fromEntries(header.split(',').map((name, i) => [name, cells.split(',')[i] ?? '']));
  const effective = { automatic_payout_effective_at_utc: '2026-09-30 00:00:00' };
  stripe.reports.lines = [line, { ...line, balance_transaction_id: 'txn_2' }].map((one) => ({
    ...one,
    ...effective,
  }));
  stripe.reports.pending = 0;
  const fetched = await command('fetch', '--connection', 's');
  const { code, stdout } = fetched;
  expect([code, stdout.split('\n').slice(5)]).toEqual([
    0,
    [
      '2026-09-29 to 2026-09-30 (exclusive): 0 new lines, 0 repeated',
      '2026-09-30 to 2026-10-01 (exclusive): 1 new lines, 1 repeated',
      '0 matched, 1 of unknown payments, 0 ambiguous',
      '',
    ],
  ]);
  expect((await command('fetch', '--connection', 's')).stdout).toMatch(
    /^all that the provider has completed was fetched before\n/,
  );
  const days = ['--from', '2026-09-24', '--before'];
  expect((await command('fetch', '--connection', 's', ...days, '2026-10-01')).stdout).toMatch(
    /^2026-09-24 to 2026-10-01 \(exclusive\): 0 new lines, 2 repeated\n/,
  );
  const later = await command('fetch', '--connection', 's', ...days, '2026-10-02');
  expect([later.code, later.stderr]).toEqual([
    1,
    expect.stringContaining('Nothing was imported: the provider has complete reports on the days from'),
  ]);
});

it('if the database fails while lines are matched, the settlement command says that they are stored', async () => {
  const report = write('unmatched.csv', REPORT.replaceAll('txn_1', 'txn_9'));
  await tables.query('ALTER TABLE settlement_coverage RENAME TO away');
  const failed = await command('import', report, '--connection', 's');
  await tables.query('ALTER TABLE away RENAME TO settlement_coverage');
  expect([failed.code, failed.stderr]).toEqual([
    1,
    expect.stringContaining('The lines are stored, but not all are matched: '),
  ]);
  expect(await command('match', '--connection', 's')).toMatchObject({ code: 0 });
  expect(await tables.query("SELECT result FROM settlement_line WHERE line_key = 'txn_9'")).toEqual([
    { result: 'unmatched' },
  ]);
});

it.each([
  ['differences', 'differences failed: '],
  ['import', 'Nothing was imported: '],
])('if the database does not answer, settlement %s says so in words of its own', async (action, words) => {
  const operands = action === 'import' ? [write('unread.csv', REPORT)] : [];
  const environment = { DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none', CATALOGUE_FILE: catalogue };
  const { code, stderr } = await runCommand(
    run,
    { ...environment, ...SECRETS, ...KEYS },
    ...[action, ...operands, '--connection', 's'],
  );
  expect([code, stderr]).toEqual([1, expect.stringContaining(words)]);
});

it('the settlement command refuses a report of another provider, and names the columns', async () => {
  const { code, stderr } = await command('import', write('other.csv', 'a;b\n1;2\n'), '--connection', 's');
  expect([code, stderr]).toEqual([
    1,
    expect.stringContaining('Nothing was imported: line 1: the report must have'),
  ]);
});

it.each([
  [['import'], 'import takes 1 arguments.'],
  [['export', 'x'], 'The first argument must be an action.'],
  [['resolve', 'a', 'b', '--connection', 's'], '--note is required'],
  [['reopen', 'a', 'b', '--connection', 's', '--note', 'of 4111 1111 1111 1111'], 'may be a card number'],
  [['import', catalogue], '--connection is required.'],
  [['sandbox-report', 'x.csv', '--connection', 's'], '--connection: s is no connection to the sandbox.'],
  [['fetch', '--connection', 'a'], 'the reports of adyen are files: download the report and run: npm run'],
  [['fetch', '--connection', 's', '--from', '2026-9-1'], '--from must be a day, as in 2026-09-30.'],
  [['fetch', '--connection', 's', '--before', '2026-02-30'], '--before must be a day'],
  [['fetch', '--connection', 's', '--before', '2026-09-30'], '--from and --before go together.'],
  [
    ['fetch', '--connection', 's', '--from', '2026-09-02', '--before', '2026-09-02'],
    '--from must be earlier than --before.',
  ],
  [['differences', '--connection', 's', '--from', '2026-09-02'], '--from and --before are for fetch.'],
  [['import', join(directory, 'none.csv'), '--connection', 's'], 'cannot be read (ENOENT)'],
  [
    ['import', catalogue, '--connection', 't'],
    '--connection: there is no connection t in the catalogue in force.',
  ],
])('the settlement command refuses %o', async (args, message) => {
  const { code, stderr } = await command(...args);
  expect([code, stderr]).toEqual([expect.any(Number), expect.stringContaining(message)]);
  expect(code).not.toBe(0);
});
