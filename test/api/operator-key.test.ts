import { randomUUID } from 'node:crypto';
import { Code, ConnectError } from '@connectrpc/connect';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ErrorInfoSchema } from '#gen/google/rpc/error_details_pb.js';
import { onService, server } from '../support/on-service.ts';
import {
  type KeyHeaders,
  OPERATOR,
  type OperatorCalls,
  operatorCalls,
  requestMessage,
} from '../support/operator-calls.ts';
import { cardPayment, headersOne } from '../support/payment-requests.ts';
import { RPCS } from '../support/rpc-transports.ts';
import { startTestServer } from '../support/server.ts';

let calls: OperatorCalls;

onService();
beforeAll(async () => {
  calls = operatorCalls(server.url);
});

afterAll(() => calls?.close());

const { 'x-idempotency-key': _key, ...account } = headersOne();
const wrong: [string, KeyHeaders][] = [
  ['none', {}],
  ['an empty one', { 'operator-key': '' }],
  ['a wrong one', { 'operator-key': 'op_wrong_key_that_nobody_has' }],
  ['the keys of an account', account],
  ['the secret of an account as the operator key', { 'operator-key': 'sk_sandbox_one' }],
  ['the right one twice', { 'operator-key': 'op_sandbox, op_sandbox' }],
];

it.each(wrong)(
  'an operator call with the wrong operator key (%s) gets the same refusal in every case',
  async (_what, headers) => {
    const asked = [await calls.list(headers), await calls.explain(cardPayment(), { headers })];
    for (const { status, json } of asked) {
      expect({ ...json, request_id: '' }).toEqual({
        ...{ type: 'about:blank', title: 'Invalid credentials', status: 401, code: 'INVALID_CREDENTIALS' },
        detail: 'operator-key is missing or wrong',
        messages: ['operator-key is missing or wrong'],
        ...{ errors: [], request_id: '' },
      });
      expect(status).toBe(401);
    }
    for (const protocol of RPCS) {
      for (const call of [
        calls.rpcs[protocol].listConnections({}, { headers }),
        calls.rpcs[protocol].explainRoute({ payment: requestMessage(cardPayment()) }, { headers }),
      ]) {
        const error = ConnectError.from(await call.catch((reason) => reason));
        expect([error.code, error.findDetails(ErrorInfoSchema)[0]?.reason]).toEqual([
          Code.Unauthenticated,
          'INVALID_CREDENTIALS',
        ]);
      }
    }
  },
);

it('the operator key does not authenticate an account', async () => {
  const idempotent = { 'x-idempotency-key': randomUUID() };
  for (const headers of [
    OPERATOR,
    { 'public-api-key': 'op_sandbox', 'private-secret-key': 'op_sandbox' },
    { ...OPERATOR, 'public-api-key': 'pk_sandbox_one', 'private-secret-key': 'op_sandbox' },
  ]) {
    expect((await calls.pay(cardPayment(), { ...headers, ...idempotent })).status).toBe(401);
  }
});

it('a failed operator authentication is logged without its key', async () => {
  const from = server.logLines.length;
  await calls.list({ 'operator-key': 'op_wrong_key_that_nobody_has' });
  const lines = server.logLines.slice(from);
  expect(lines.map((line) => JSON.parse(line).msg)).toContain('authentication failed');
  expect(server.logLines.join('')).not.toMatch(/op_wrong_key|op_sandbox/);
});

it('every configured operator key is accepted, all keys share one rate limit, and other keys are refused', async () => {
  const keys = ['one-operator-key-of-128-bits', 'other-operator-key-of-128-bits'];
  const own = await startTestServer({
    config: { operatorKeys: keys, rateLimitPerS: 1, rateLimitBurst: 2 },
  });
  const ofOwn = operatorCalls(own.url);
  for (const key of keys) expect((await ofOwn.list({ 'operator-key': key })).status).toBe(200);
  expect((await ofOwn.list()).status).toBe(401);
  const many = await Promise.all(
    Array.from({ length: 20 }, (_, i) => ofOwn.list({ 'operator-key': keys[i % 2] ?? '' })),
  );
  expect(many.filter(({ status }) => status === 429).length).toBeGreaterThan(0);
  expect((await ofOwn.pay(cardPayment(), headersOne())).status).toBe(201);
  ofOwn.close();
  await own.close();
});

it('without a configured operator key, every operator call is refused', async () => {
  const own = await startTestServer({ config: { operatorKeys: [] } });
  const ofOwn = operatorCalls(own.url);
  for (const headers of [OPERATOR, {}, { 'operator-key': '' }]) {
    expect((await ofOwn.list(headers)).status).toBe(401);
  }
  ofOwn.close();
  await own.close();
});
