import { create, toBinary } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { CardDataInputSchema, CardDataSchema } from '#gen/payments/v1/payment_method_pb.js';
import { cardFingerprint } from '#src/payments/method/card.ts';
import type { CardSource } from '#src/payments/method/card-source.ts';
import { readCard, walletFingerprint } from '#src/payments/method/payer-card.ts';
import type { RequestedMethod } from '#src/payments/method/payment-method.ts';
import { Secret } from '#src/secret.ts';
import { type CardVault, VaultKeyMissingError } from '#src/vault/card-vault.ts';
import { CARD_OPTIONS } from '../connectors/attempts.ts';

const NUMBER = '4539578763621486';

/** Reads a stored card from this vault, for a payment with this security code. */
function readStored(open: () => Promise<Secret>, securityCode = '') {
  const data = toBinary(CardDataSchema, create(CardDataSchema, { lfd: '1486', numberLength: 16 }));
  const vaultedToken = {
    ...{ id: 'token', type: 'CARD', card: { data, number: 'sealed', fingerprint: undefined } },
    ...{ providerToken: undefined, connectionId: undefined, customerId: undefined },
  };
  return read({ source: 'stored', stored: vaultedToken, securityCode }, open);
}

/** Reads a payment's card, with a vault that opens what it holds like this. */
function read(card: CardSource, open: CardVault['open'] = refuse) {
  const method: RequestedMethod = { by: 'card', type: 'CARD', card, ...CARD_OPTIONS };
  const deps = { vault: { open, seal: refuse, reseal: refuse }, fingerprintKey: new Uint8Array(32) };
  return readCard(deps, () => undefined, method, 'account');
}

it.each([
  ['', undefined],
  ['9417', '9417'],
])(
  'the record of a vaulted card omits the length of the security code "%s" sent with it, but the provider gets it',
  async (sent, given) => {
    const card = await readStored(async () => new Secret(NUMBER), sent);
    expect(card?.data).toMatchObject({ lfd: '1486', numberLength: 16, securityCodeLength: 0 });
    expect(card?.attempt.number.reveal()).toBe(NUMBER);
    expect(card?.attempt.securityCode?.reveal()).toBe(given);
  },
);

it('a stored card can be retried if the key of its vault is missing, but not if it was altered', async () => {
  const missing = new VaultKeyMissingError('old');
  await expect(readStored(() => Promise.reject(missing))).rejects.toMatchObject({
    ...{ reason: 'SERVICE_UNAVAILABLE', cause: missing },
  });
  const altered = new Error('the sealed card belongs to another token');
  await expect(readStored(() => Promise.reject(altered))).rejects.toBe(altered);
});

it('a card that was sent has a fingerprint, and its provider gets the number and the security code', async () => {
  const input = create(CardDataInputSchema, { number: NUMBER, securityCode: '737', holderName: 'ANA' });
  const card = await read({ source: 'sent', input });
  expect(card).toMatchObject({
    data: { lfd: '1486', securityCodeLength: 3, holderName: 'ANA' },
    fingerprint: cardFingerprint(new Uint8Array(32), 'account', NUMBER),
    attempt: { holderName: 'ANA' },
  });
  expect([card?.attempt.number.reveal(), card?.attempt.securityCode?.reveal()]).toEqual([NUMBER, '737']);
});

it.each([
  [`${NUMBER} 737`, '737'],
  [`${NUMBER} `, undefined],
])(
  'the card of a one-time token is opened from "%s", with the fingerprint of its token',
  async (sealed, code) => {
    const data = create(CardDataSchema, { lfd: '1486', holderName: 'ANA' });
    const token = {
      ...{ id: 'token', sealed, card: toBinary(CardDataSchema, data), fingerprint: 'fingerprint' },
      ...{ sessionId: undefined, choices: new Uint8Array() },
    };
    const card = await read({ source: 'token', token }, async (text) => new Secret(text));
    expect(card).toMatchObject({ data, fingerprint: 'fingerprint', attempt: { holderName: 'ANA' } });
    expect([card?.attempt.number.reveal(), card?.attempt.securityCode?.reveal()]).toEqual([NUMBER, code]);
  },
);

it('a card whose stored method or token was not looked up is never paid with', async () => {
  await expect(read({ source: 'token', token: undefined })).rejects.toThrow('is missing');
  const unread = read({ source: 'stored', stored: undefined, securityCode: '' });
  await expect(unread).rejects.toThrow('holds no card');
});

it('other methods have no card', async () => {
  const deps = { vault: { open: refuse, seal: refuse, reseal: refuse }, fingerprintKey: new Uint8Array(32) };
  const page: RequestedMethod = { by: 'payer', type: 'WALLET', show: 'page' };
  expect(await readCard(deps, () => undefined, page, 'account')).toBeUndefined();
});

it('an enrolled wallet has the same fingerprint in each payment of an account, and other wallets have another', () => {
  const of = (token: string, by: RequestedMethod['by'] = 'wallet', accountId = 'account') =>
    walletFingerprint({ fingerprintKey: new Uint8Array(32) }, { by }, token, accountId);
  expect(of('one')).toMatch(/^[0-9a-f-]{36}$/);
  expect(of('one')).toBe(of('one'));
  // Without a token, no two payments are known to be of one wallet.
  const others = [of('one'), of('two'), of('one', 'wallet', 'other'), of(''), of('')];
  expect(new Set(others).size).toBe(others.length);
  expect(of('one', 'payer')).toBe('');
});

const refuse = () => Promise.reject(new Error('nothing is sealed here'));
