import { afterAll, beforeAll, expect, it } from 'vitest';
import type { RawNotification } from '#src/connectors/port/connector.ts';
import { payersPage } from '#src/connectors/port/outcome.ts';
import { codeAttempt, connectAdyen, read } from '../../connectors/adyen/adyen-under-test.ts';
import { adyen } from './adyen.ts';
import { codeAtDouble } from './code-at-double.ts';
import type { Judge } from './provider.ts';

/* The codes of the double with which the faults judge Adyen, behind its front. */

let judge: Judge;
let connection: ReturnType<typeof connectAdyen>;
const told: RawNotification[] = [];

beforeAll(async () => {
  judge = await adyen.start({
    checkout: '',
    ledgerUrl: async () => '',
    async deliver(_connection, notification) {
      told.push(notification);
      return 200;
    },
  });
  connection = connectAdyen({ base_url: `http://127.0.0.1:${judge.port}` });
});
afterAll(async () => {
  await connection?.close();
  await judge?.kill();
});

async function created(type = 'PIX', word = 'order') {
  const attempt = codeAttempt(type, { merchantOrderId: word }, { bankId: '1022' });
  const code = await codeAtDouble(judge, connection, attempt);
  const { line } = code;
  /** Waits for the double's own notification about the end of the code. */
  const isNow = async (kind: string, status: string, captured: number) => {
    expect(await line()).toMatchObject({ kind: 'code', status, amount: 300_000, amount_captured: captured });
    const kinds = async () => {
      const readings = await Promise.all(told.map(({ body }) => read(connection, Buffer.from(body))));
      return readings.flatMap((reading) =>
        (reading.kind === 'about' ? reading.subjects : []).flatMap(({ transactionId, signed }) =>
          transactionId === attempt.transactionId ? [signed?.outcome.kind] : [],
        ),
      );
    };
    await expect.poll(kinds).toEqual([kind]);
  };
  return { ...code, isNow };
}

it('a code at the double is created, and paid once, which its notification reports', async () => {
  const { line, isNow } = await created();
  expect(await line()).toMatchObject({ kind: 'code', status: 'created', amount_captured: 0 });
  await judge.agree(await line());
  await isNow('approved', 'paid', 300_000);
  await expect(judge.agree(await line())).rejects.toThrow('nothing can happen');
});

it('a code at the double runs out, and can still be paid', async () => {
  const { line, isNow } = await created('BOLETO');
  await judge.expire?.(await line());
  await isNow('expired', 'expired', 0);
  await judge.agree(await line());
  expect(await line()).toMatchObject({ status: 'paid', amount_captured: 300_000 });
});

it("a payer of PSE pays at the double's page, and brings its result back", async () => {
  const { line, outcome, isNow } = await created('PSE');
  expect(payersPage(outcome)).toMatch(/^http/);
  expect(await judge.agree(await line())).toMatch(/^redirectResult=/);
  await isNow('approved', 'paid', 300_000);
});

it.each(['reset_before', 'reset_after', 'error_before', 'error_after', 'truncated'])(
  'a code whose creation the front loses by %s is created once',
  async (word) => {
    const { line } = await created('PIX', `sandbox:${word}`);
    expect(await line()).toMatchObject({ status: 'created' });
  },
);
