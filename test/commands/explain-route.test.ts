import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { run } from '#src/commands/explain-route.ts';
import { ACCOUNT_TWO, CARD_DATA, cardPayment, VAULTED_CARD, withField } from '../support/payment-requests.ts';
import { type Ran, runCommand } from '../support/run-command.ts';

const ROOT = join(import.meta.dirname, '../..');
const home = mkdtempSync(join(tmpdir(), 'route-'));
afterAll(() => rmSync(home, { recursive: true }));

/** Runs the command in an environment without any of our variables. */
function route(args: readonly string[], environment: Readonly<Record<string, string>> = {}): Promise<Ran> {
  return runCommand(run, environment, ...args);
}

let files = 0;

function file(content: string | object): string {
  const path = join(home, `file-${files++}`);
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

const CATALOGUE = `
payment_method_types: [{ type: CARD, category: CARD, workflows: [DIRECT] }]
connections:
  - { id: first, name: First bank, provider_id: FIRST, connector: nowhere, secrets_from_environment: { key: NOT_SET } }
  - { id: second, name: Second bank, provider_id: SECOND, connector: nowhere }
routes:
  - { id: 7, name: Brazil, condition: country == 'BR', targets: [{ connection: first }] }
  - id: 8
    name: Split
    condition: amount < 100
    targets: [{ connection: first, weight: 2 }, { connection: second, weight: 1 }]
    choice: SPLIT
    failover: { soft_declines: true }
    accounts: [{ account_ids: [${ACCOUNT_TWO}], targets: [{ connection: second }] }]
`;

it('the route command explains a request with the sandbox’s catalogue, without a database or secrets', async () => {
  const { code, stdout, stderr } = await route([
    join(ROOT, 'test/scenarios/05-card-authorization/request.json'),
  ]);
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toMatch(/^Facts\n {2}account_id {10}"11111111-/);
  expect(stdout).toContain('Cards in Brazil: country == "BR" does not hold (country is "US")\n');
  expect(stdout).toMatch(
    /\n {2}2 {2}Cards elsewhere: TAKEN\n\nTargets, in the order for this payment \(PRIORITY\)\n/,
  );
  expect(stdout).toContain('\n  1  sandbox-one  Sandbox acquirer one\n');
  expect(stdout).toContain('Assumes that every circuit is closed');
});

describe('the route command with another catalogue', () => {
  const catalogue = file(CATALOGUE);

  it('the route command shows shares and the failover rule, and the key decides the order of targets', async () => {
    const request = file(cardPayment());
    const ofKey = (key: string) => route([request, '--catalogue', catalogue, '--key', key]);
    const printed = await Promise.all(['a', 'b', 'c', 'd'].map(ofKey));
    for (const { code, stdout } of printed) {
      expect(code).toBe(0);
      expect(stdout).toMatch(/ {2}[12] {2}first {2}First bank {2}66.7 %\n/);
      expect(stdout).toMatch(/ {2}[12] {2}second {2}Second bank {2}33.3 %\n/);
      expect(stdout).toContain(
        'Failover: up to 2 attempts. The next target is tried when nothing was sent and after a soft decline,',
      );
    }
    const firsts = new Set(printed.map(({ stdout }) => /^ {2}1 {2}(\w+) /m.exec(stdout)?.[1]));
    expect([...firsts].sort()).toEqual(['first', 'second']);
  });

  it('the route command shows the account’s own targets, and says that a stored card was not looked up', async () => {
    const payment_method = { type: 'CARD', vaulted_token: VAULTED_CARD };
    const request = file({ ...cardPayment(), account_id: ACCOUNT_TWO, payment_method });
    const { code, stdout } = await route([request], { CATALOGUE_FILE: catalogue });
    expect(code).toBe(0);
    expect(stdout).toContain(
      'Targets of this account, in the order for this payment (PRIORITY)\n  1  second  ',
    );
    expect(stdout).toContain('Failover: none; there is one attempt.\n');
    expect(stdout).toContain('was not looked up');
  });

  it('the route command explains why no route accepts the payment, and exits with 1', async () => {
    const request = file(withField(cardPayment(), 'amount.value', 1000.5));
    const { code, stdout, stderr } = await route([request, '--catalogue', catalogue]);
    expect([code, stderr]).toEqual([1, 'No route accepts this payment.\n']);
    expect(stdout).toMatch(/\n {2}8 {2}Split: amount < 100 does not hold \(amount is 1000.5\)\n/);
  });
});

describe('errors of the route command', () => {
  const CARD = '4012888888881881';

  it.each<[what: string, content: string | object, reason: string, line: string]>([
    [
      'an invalid field',
      withField(cardPayment(CARD), 'country', CARD),
      'INVALID_PARAMETERS',
      '  country: must be an ISO',
    ],
    [
      'a card number',
      withField(cardPayment(CARD), `${CARD_DATA}.number`, `${CARD.slice(1)}0`),
      'INVALID_PARAMETERS',
      `  ${CARD_DATA}.number: must pass the Luhn check`,
    ],
    [
      'a type that is not offered',
      withField(cardPayment(CARD), 'payment_method.type', 'CHEQUE'),
      'PAYMENT_METHOD_NOT_AVAILABLE',
      '  payment_method.type: is not offered',
    ],
    ['a body that is not JSON', `{"number": "${CARD}"`, 'INVALID_REQUEST', '  the body is not valid JSON'],
    ['a body that is not an object', '[]', 'INVALID_REQUEST', '  the body must be a JSON object'],
  ])(
    'the route command reports %s as the service does, and exits with 1',
    async (_what, content, reason, line) => {
      const request = file(content);
      const { code, stdout, stderr } = await route([request]);
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toContain(`${request} is refused (${reason}):\n${line}`);
      expect(stderr).not.toContain(CARD.slice(1));
    },
  );

  it('the route command reports a request file that is too large or does not exist, and exits with 1', async () => {
    const large = file({ ...cardPayment(), description: 'x'.repeat(256 * 1024) });
    expect(await route([large])).toMatchObject({ code: 1, stderr: `${large} is larger than 262144 bytes\n` });
    const nowhere = join(home, 'nowhere.json');
    expect(await route([nowhere])).toMatchObject({ code: 1, stderr: `${nowhere} cannot be read (ENOENT)\n` });
  });

  it('the route command reports a fault in the catalogue with its line and field, and exits with 1', async () => {
    const wrong = file(CATALOGUE.replace("country == 'BR'", 'contry == true'));
    const { code, stdout, stderr } = await route([file(cardPayment()), '--catalogue', wrong]);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(/^Not done: .*routes\[0\]\.condition: .*contry.* line 7, column 39/);
  });
});

it.each([
  ['no request', [], 'Exactly one request is required.'],
  ['two requests', ['a.json', 'b.json'], 'Exactly one request is required.'],
  ['an unknown option', ['a.json', '--account', 'x'], "Unknown option '--account'"],
])('the route command refuses %s with a usage message and exit code 2', async (_what, args, message) => {
  const { code, stdout, stderr } = await route(args);
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr.startsWith(message), stderr).toBe(true);
  expect(stderr).toContain('\n\nUsage: npm run route -- <request.json>');
});

it('the route command prints its usage for --help, and npm run route starts it', async () => {
  const { code, stdout } = await route(['--help']);
  expect([code, stdout.startsWith('Usage: npm run route')]).toEqual([0, true]);
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  expect(scripts.route).toBe('node src/commands/explain-route.ts');
});
