import { expect, it, vi } from 'vitest';
import { type Key, underKey } from '#src/payments/keys/replay.ts';
import { ServiceError } from '#src/service-error.ts';

const HASH = { hash: Buffer.alloc(32, 1), shape: Buffer.alloc(16, 1) };
const HOLDER = { requestHash: HASH.hash, requestShape: HASH.shape };

/** A key that a call with the same request holds, or nothing. */
function keyOf(holder: typeof HOLDER | undefined) {
  const find = vi.fn(async () => holder);
  const key: Key<typeof HOLDER, { text: string }> = {
    ...{ find, hash: () => HASH, read: async () => ({ text: 'first' }) },
  };
  return { key, find };
}
const made = async () => ({ text: 'made', replayed: false });

it('a call that claims its key is made, and the key is not looked up', async () => {
  const { key, find } = keyOf(HOLDER);
  expect(await underKey(key, async () => ({ claimed: 1 }), made)).toEqual({ text: 'made', replayed: false });
  expect(find).not.toHaveBeenCalled();
});

it('a call whose key is held by another call gets that call’s response', async () => {
  const { key } = keyOf(undefined);
  expect(await underKey(key, async () => ({ holder: HOLDER }), made)).toEqual({
    text: 'first',
    replayed: true,
  });
});

it.each([
  ['a refused request', new ServiceError('INVALID_PARAMETERS', 'no route')],
  ['a fault of ours', new TypeError('a fault')],
])('after %s, a held key has its response, and any other call is refused', async (_what, refusal) => {
  const claim = () => Promise.reject(refusal);
  expect(await underKey(keyOf(HOLDER).key, claim, made)).toEqual({ text: 'first', replayed: true });
  await expect(underKey(keyOf(undefined).key, claim, made)).rejects.toBe(refusal);
});

it.each(['INVALID_CREDENTIALS', 'REQUEST_IN_PROGRESS'] as const)(
  'after %s, the key is not looked up: the caller may not know, or the claim may be this call’s own',
  async (reason) => {
    const refusal = new ServiceError(reason, 'refused');
    const { key, find } = keyOf(HOLDER);
    await expect(underKey(key, () => Promise.reject(refusal), made)).rejects.toBe(refusal);
    expect(find).not.toHaveBeenCalled();
  },
);
