import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import { sandboxConnector } from '#src/connectors/sandbox/connector.ts';
import { Secret } from '#src/secret.ts';
import { localAttempt, lookUpOf } from '../../connectors/attempts.ts';
import { createTestDatabase } from '../../support/database.ts';
import type { Judge, LedgerLine } from './provider.ts';
import { sandbox } from './sandbox.ts';

/* The codes of the simulated provider with which the faults judge the sandbox's connector. */

let database: Awaited<ReturnType<typeof createTestDatabase>>;
let judge: Judge;
let connection: ProviderConnection;

beforeAll(async () => {
  database = await createTestDatabase({ empty: true });
  judge = await sandbox.start({
    checkout: process.cwd(),
    ledgerUrl: async () => database.url,
    deliver: async () => undefined,
  });
  const api_key = new Secret(sandbox.environment.FAULTS_API_KEY ?? '');
  connection = sandboxConnector.connect(
    { base_url: `http://127.0.0.1:${judge.port}`, timeout_ms: sandbox.timeoutMs },
    { providerId: 'JUDGE', secrets: { api_key } },
  );
});
afterAll(async () => {
  await connection?.close();
  await judge?.kill();
  await database?.drop();
});

async function created(description = '') {
  const money = { minorUnits: 5_000n, currency: 'BRL' };
  const attempt = localAttempt({ type: 'PIX' }, { money, description });
  expect(await connection.pay(attempt)).toMatchObject({ kind: 'awaits_payer' });
  const line = async (): Promise<LedgerLine> => {
    const lines = (await judge.ledger()).filter((one) => one.idempotency_key === attempt.transactionId);
    expect(lines).toHaveLength(1);
    return lines[0] as LedgerLine;
  };
  const isNow = async (kind: string, status: string, captured: number) => {
    expect(await connection.lookUp?.(lookUpOf(attempt))).toMatchObject({ kind });
    const shown = { kind: 'code', status, amount: 5_000, currency: 'BRL', amount_captured: captured };
    expect(await line()).toMatchObject(shown);
  };
  return { attempt, line, isNow };
}

it('a code at the provider is created and paid, and the ledger shows it', async () => {
  const { line, isNow } = await created();
  await isNow('awaits_payer', 'created', 0);
  await judge.agree(await line());
  await isNow('approved', 'paid', 5_000);
});

it('a code at the provider runs out, or is closed', async () => {
  const ended = await created();
  await judge.expire?.(await ended.line());
  await ended.isNow('expired', 'expired', 0);
  const closed = await created();
  await connection.lookUp?.(lookUpOf(closed.attempt, { close: true }));
  await closed.isNow('expired', 'canceled', 0);
});

it.each(['reset_after', 'error_after', 'truncated', 'html'])(
  'a code whose creation the provider loses by %s is created once',
  async (word) => {
    await (await created(`sandbox:${word}`)).isNow('awaits_payer', 'created', 0);
  },
);

it('the gate knows the calls about codes', () => {
  expect(
    [
      'POST /v1/codes HTTP',
      'POST /v1/by-idempotency-key/1/close HTTP',
      'GET /v1/by-idempotency-key/1 HTTP',
    ].map(sandbox.callOf),
  ).toEqual(['charge', 'close', 'look_up']);
});
