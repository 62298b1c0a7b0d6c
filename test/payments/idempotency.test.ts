import { describe, expect, it } from 'vitest';
import { awaitHolder, awaitResponse } from '#src/payments/keys/await-response.ts';
import { requireIdempotencyKey, storedIdempotencyKey } from '#src/payments/keys/key.ts';
import { requireSameRequest } from '#src/payments/keys/replay.ts';
import { DatabaseUnavailableError } from '#src/store/engine/database-error.ts';
import type { KeyHolder } from '#src/store/tables/payment-keys.ts';
import { RESPONSES } from '../support/stored-responses.ts';

describe('requireIdempotencyKey', () => {
  it.each(['a', 'f81d4fae-7dec-11d0-a765-00a0c91e6bf6', ' key with spaces ~', 'x'.repeat(255)])(
    'requireIdempotencyKey accepts %j',
    (key) => {
      expect(requireIdempotencyKey(key)).toBe(key);
    },
  );

  it.each([undefined, '', 'x'.repeat(256), 'schlüssel', 'tab\t', 'line\n', '\x7f', '\0'])(
    'requireIdempotencyKey refuses %j',
    (key) => {
      expect(() => requireIdempotencyKey(key)).toThrow(
        expect.objectContaining({ reason: 'IDEMPOTENCY_KEY_MISSING', fields: [expect.anything()] }),
      );
    },
  );
});

it.each(['K, K', 'K,K', 'K ,  K', 'K, K, K', 'K,', ', K', 'K, , K', ','])(
  'requireIdempotencyKey refuses %j: a key that was sent twice and joined',
  (key) => {
    const message = 'must be 1 to 255 printable ASCII characters, sent once';
    expect(() => requireIdempotencyKey(key)).toThrow(
      expect.objectContaining({
        reason: 'IDEMPOTENCY_KEY_MISSING',
        fields: [{ field: 'x-idempotency-key', code: 'INVALID_FORMAT', message }],
      }),
    );
  },
);

it.each(['K, L', 'K, K, L', 'K,k', 'order 7,1', 'K K'])(
  'requireIdempotencyKey takes %j as one key',
  (key) => {
    expect(requireIdempotencyKey(key)).toBe(key);
  },
);

it('a missing key and a malformed key are refused with different errors', () => {
  const refusal = (code: string, message: string) =>
    expect.objectContaining({
      message: `x-idempotency-key: ${message}`,
      fields: [{ field: 'x-idempotency-key', code, message }],
    });
  expect(() => requireIdempotencyKey(undefined)).toThrow(refusal('REQUIRED', 'is required'));
  expect(() => requireIdempotencyKey('')).toThrow(
    refusal('INVALID_FORMAT', 'must be 1 to 255 printable ASCII characters, sent once'),
  );
});

it('idempotency keys of public callers never equal those of a merchant', () => {
  const stored = (secretPresented: boolean, idempotencyKey: string | undefined = 'order-1001') =>
    storedIdempotencyKey({ idempotencyKey, secretPresented });
  expect(stored(true)).toBe('order-1001');
  expect(stored(false)).toBe('\u0001order-1001');
  expect(() => stored(true, '\u0001order-1001')).toThrow(
    expect.objectContaining({ reason: 'IDEMPOTENCY_KEY_MISSING' }),
  );
});

const held: KeyHolder = {
  paymentId: 'p',
  requestHash: Buffer.alloc(32, 1),
  requestShape: Buffer.alloc(16, 1),
  record: Buffer.from('record'),
  response: undefined,
};

describe('a held key', () => {
  const [one, two] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
  const [shape, otherShape] = [Buffer.alloc(16, 1), Buffer.alloc(16, 2)];
  const reused = expect.objectContaining({
    reason: 'IDEMPOTENCY_KEY_REUSED',
    fields: [expect.objectContaining({ field: 'x-idempotency-key', code: 'NOT_ALLOWED' })],
  });

  it('a held key is refused for a different request', () => {
    expect(() => requireSameRequest(held, { hash: one, shape })).not.toThrow();
    expect(() => requireSameRequest(held, { hash: two, shape })).toThrow(reused);
  });

  it.each([
    ['knows other fields', { ...held, requestShape: otherShape }],
    ['stored another kind of description', { ...held, requestShape: Buffer.alloc(2) }],
  ])(
    'a held key is not refused if the release that claimed it %s, since the two requests are not comparable',
    (_name, holder) => {
      expect(() => requireSameRequest(holder, { hash: two, shape })).not.toThrow();
    },
  );

  const patience = { waitMs: 1_000, retryAfterS: 1, pause: async () => {} };

  it('a held key is read again until there is a response', async () => {
    const response = Buffer.from('response');
    let reads = 0;
    const read = async () => ({ ...held, ...(++reads === 3 && { response }) });
    expect(await awaitHolder(held, read, patience)).toMatchObject({ response });
    expect(reads).toBe(3);
  });

  it('a held key that was never read is read, and is read again if no payment with it is found', async () => {
    const response = Buffer.from('response');
    const readings = [undefined, { ...held, response }];
    expect(await awaitHolder(undefined, async () => readings.shift(), patience)).toMatchObject({
      response,
    });
    expect(readings).toEqual([]);
  });

  it('a held key is read after pauses that double up to a quarter of a second', async () => {
    const pauses: number[] = [];
    const pause = async (ms: number) => void pauses.push(ms);
    const read = async () => ({ ...held, ...(pauses.length === 8 && { response: Buffer.from('response') }) });
    await awaitHolder(held, read, { ...patience, waitMs: 60_000, pause });
    expect(pauses).toEqual([10, 20, 40, 80, 160, 250, 250, 250]);
  });

  it('a held key is refused at once if the first pause would be too long', async () => {
    const pauses: number[] = [];
    const pause = async (ms: number) => void pauses.push(ms);
    const waiting = awaitHolder(held, async () => held, { ...patience, waitMs: 9, pause });
    await expect(waiting).rejects.toMatchObject({ reason: 'REQUEST_IN_PROGRESS' });
    expect(pauses).toEqual([]);
  });

  it('a request is refused as in progress when the wait for its key ends', async () => {
    const read = async () => held;
    await expect(awaitHolder(held, read, { ...patience, waitMs: 0 })).rejects.toMatchObject({
      reason: 'REQUEST_IN_PROGRESS',
      retryAfterS: 1,
    });
  });

  it('a claimed call whose response cannot be read is refused as in progress, never as not accepted', async () => {
    const lost = new DatabaseUnavailableError(new Error('refused'));
    const fault = new TypeError('a fault of ours');
    const deps = { patience, responses: RESPONSES };
    await expect(awaitResponse(deps, 'payment', () => Promise.reject(lost))).rejects.toMatchObject({
      ...{ reason: 'REQUEST_IN_PROGRESS', retryAfterS: 1, cause: lost },
    });
    await expect(awaitResponse(deps, 'payment', () => Promise.reject(fault))).rejects.toBe(fault);
  });
});
