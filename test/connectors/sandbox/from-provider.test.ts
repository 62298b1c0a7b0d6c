import { expect, it } from 'vitest';
import { fromPayment } from '#src/connectors/sandbox/from-provider.ts';
import { cardAttempt } from '../attempts.ts';
import { chargeAnswer } from './answers.ts';

function read(attempt: ReturnType<typeof cardAttempt>, answer: object) {
  const result = {
    kind: 'answer',
    status: 201,
    headers: {},
    body: Buffer.from(JSON.stringify(answer)),
  } as const;
  return fromPayment(result, attempt, 'SANDBOX_ONE');
}

it('unknown fields are dropped from raw_response', () => {
  const attempt = cardAttempt();
  const outcome = read(attempt, {
    ...chargeAnswer(attempt),
    cvc: '987',
    card: { number: '4111111111111111' },
  });
  expect(outcome).toMatchObject({ kind: 'approved', providerData: { rawResponse: chargeAnswer(attempt) } });
  expect(JSON.stringify(outcome)).not.toMatch(/cvc|4111111111111111/);
});

it('an object in place of a string is not shown', () => {
  const attempt = cardAttempt();
  const outcome = read(attempt, {
    ...chargeAnswer(attempt),
    account: { a: 1 },
  });
  expect(outcome).toMatchObject({
    kind: 'approved',
    providerData: { accountId: '' },
  });
  expect(outcome).not.toHaveProperty('providerData.rawResponse.account');
});

it.each([
  ['amount', { amount: 300_001 }],
  ['currency', { currency: 'EUR' }],
  ['idempotency_key', { idempotency_key: 'another' }],
])('an approval whose %s differs raises an alarm', (field, change) => {
  const attempt = cardAttempt();
  expect(read(attempt, { ...chargeAnswer(attempt), ...change })).toEqual({
    kind: 'unknown',
    detail: `alarm: the provider's response is not about this attempt: its ${field} differs`,
    providerData: undefined,
    alarm: true,
  });
});

it('a refusal of this attempt is distinguished from a refusal of the connection', () => {
  const refusal = (status: number) => {
    const body = Buffer.from(JSON.stringify({ error: { type: 'x', message: 'no' } }));
    return fromPayment({ kind: 'answer', status, headers: {}, body }, cardAttempt(), 'SANDBOX_ONE');
  };
  for (const status of [400, 404, 413, 415, 422]) {
    const detail = `the provider refused the request: ${status}`;
    expect(refusal(status)).toEqual({ kind: 'not_sent', detail, because: 'turned_away', refused: '' });
  }
  for (const status of [401, 403, 429]) {
    expect(refusal(status)).toEqual({
      kind: 'not_sent',
      detail: `the provider refused the request: ${status}`,
      because: 'unreachable',
    });
  }
});
