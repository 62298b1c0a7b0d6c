import { describe, expect, it } from 'vitest';
import { read } from '../../sandbox/provider-under-test.ts';
import { freePort } from '../../support/free-port.ts';
import { localAttempt, lookUpOf, operationOn, tokenAttempt } from '../attempts.ts';
import { WALLET_CARD } from './answers.ts';
import { connect, onSandbox, provider } from './on-sandbox.ts';

/* Local methods and wallets' tokens at the simulated provider itself. */

onSandbox();

const DAY_MS = 86_400_000;
const expiresAtMs = Date.now() + DAY_MS;
const CURRENCIES = {
  PIX: 'BRL',
  BOLETO: 'BRL',
  OXXO: 'MXN',
  SPEI: 'MXN',
  PSE: 'COP',
  EFECTY: 'COP',
} as const;
type Type = keyof typeof CURRENCIES;
const TYPES = Object.keys(CURRENCIES) as Type[];
const IN_CASH: ReadonlySet<Type> = new Set(['BOLETO', 'OXXO', 'EFECTY']);

function attemptOf(type: Type, description = '') {
  const category = IN_CASH.has(type) ? ('TICKET' as const) : ('BANK_TRANSFER' as const);
  const money = { minorUnits: 5_201n, currency: CURRENCIES[type] };
  const bankId = type === 'PSE' ? '1901' : '';
  return localAttempt(
    { type, category, bankId, accountType: 'SAVINGS' },
    { money, description, expiresAtMs },
  );
}

const idOf = (outcome: object) => ('providerPaymentId' in outcome ? String(outcome.providerPaymentId) : '');
const press = (id: string, action: string) =>
  fetch(`${provider.origin}/codes/${id}/${action}`, { method: 'POST', redirect: 'manual' });

describe.each(TYPES)('%s', (type) => {
  it('a code is created until the wanted end, found open, paid, and found paid', async () => {
    const connection = connect();
    const attempt = attemptOf(type);
    const outcome = await connection.pay(attempt);
    expect(outcome).toMatchObject({ kind: 'awaits_payer', until: new Date(expiresAtMs) });
    const query = lookUpOf(attempt);
    expect(await connection.lookUp?.(query)).toEqual(outcome);
    await press(idOf(outcome), 'pay');
    expect(await connection.lookUp?.(query)).toMatchObject({
      kind: 'approved',
      providerPaymentId: idOf(outcome),
    });
  });

  it('a code is closed, and refunded, exactly as its capabilities say', async () => {
    const connection = connect();
    const can = connection.capabilities.localMethods[type];
    const closed = attemptOf(type);
    await connection.pay(closed);
    const outcome = await connection.lookUp?.(lookUpOf(closed, { close: true }));
    expect(outcome?.kind).toBe(can?.close ? 'expired' : 'awaits_payer');

    const paid = attemptOf(type);
    await press(idOf(await connection.pay(paid)), 'pay');
    const part = { money: { ...paid.money, minorUnits: 1n } };
    const refund = await connection.refund?.(operationOn(paid, undefined, part));
    expect(refund?.kind).toBe(can?.refunds === 'several' ? 'approved' : 'declined');
  });

  it('a code is one code, although its answer was lost', async () => {
    const attempt = attemptOf(type, 'sandbox:reset_after');
    const outcome = await connect().pay(attempt);
    expect(outcome).toMatchObject({ kind: 'awaits_payer' });
    const { id } = await read(provider.origin, `/v1/by-idempotency-key/${attempt.transactionId}`);
    expect(id).toBe(idOf(outcome));
  });

  it('a creation that hangs is unknown, and its code is found later', async () => {
    const connection = connect();
    const attempt = attemptOf(type, 'sandbox:hang_after');
    expect(await connection.pay(attempt)).toMatchObject({ kind: 'unknown' });
    expect(await connection.lookUp?.(lookUpOf(attempt))).toMatchObject({ kind: 'awaits_payer' });
  });
});

it('the payer’s bank, account and way back are sent to the provider', async () => {
  const attempt = attemptOf('PSE');
  const outcome = await connect().pay(attempt);
  expect(outcome).toMatchObject({ show: { page: `http://shop.example/sandbox/codes/${idOf(outcome)}` } });
  const left = await fetch(`${provider.origin}/codes/${idOf(outcome)}/left`);
  expect(await left.text()).toContain(attempt.returnUrl);
});

it('a bank that the provider does not have is refused: nothing was created', async () => {
  const attempt = attemptOf('PSE');
  const outcome = await connect().pay({
    ...attempt,
    method: { ...attempt.method, bankId: '1' } as typeof attempt.method,
  });
  expect(outcome).toMatchObject({ kind: 'not_sent', because: 'turned_away', refused: 'bank' });
});

it('the banks of PSE are listed, and the list fails if the provider is away', async () => {
  expect(await connect().listBanks?.('PSE')).toEqual([
    { id: '1901', name: 'Banco de la Sabana' },
    { id: '1902', name: 'Banco del Páramo' },
    { id: '1903', name: expect.stringContaining('declines') },
  ]);
  const ids = (await connect().listBanks?.('PSE'))?.map(({ id }) => id);
  expect(connect().capabilities.localMethods.PSE?.banks).toEqual(ids);
  expect(await connect().listBanks?.('PIX')).toEqual([]);
  const away = connect({ base_url: `http://127.0.0.1:${await freePort()}` });
  await expect(away.listBanks?.('PSE')).rejects.toThrow('the banks cannot be listed');
});

it('a type that the connection maps to a method has the terms of the method, and pays by it', async () => {
  const connection = connect({ methods: { BANCO: 'PSE' } });
  const { localMethods } = connection.capabilities;
  expect(localMethods.BANCO).toEqual(localMethods.PSE);
  expect(await connection.listBanks?.('BANCO')).toHaveLength(3);
  const attempt = attemptOf('PSE');
  const mapped = { ...attempt, method: { ...attempt.method, type: 'BANCO' } as typeof attempt.method };
  expect(await connection.pay(mapped)).toMatchObject({ show: { page: expect.stringContaining('/codes/') } });
});

describe('the token of a wallet', () => {
  const pay = (text: string, options: Parameters<typeof tokenAttempt>[3] = {}) =>
    connect().pay(tokenAttempt('GOOGLE_PAY', JSON.stringify({ signedMessage: text }), {}, options));

  it('a token is approved with its card, declined, challenged, or refused as invalid', async () => {
    expect(await pay('sandbox')).toMatchObject({ kind: 'approved', card: WALLET_CARD });
    expect(await pay('sandbox-declined')).toMatchObject({ kind: 'declined', iso8583Code: '05' });
    expect(await pay('sandbox-challenge')).toMatchObject({ kind: 'awaits_payer' });
    expect(await pay('other')).toMatchObject({ kind: 'not_sent', refused: 'token.data' });
  });

  it('a token authorizes, verifies, and may have 16 KiB', async () => {
    expect(await pay('sandbox', { capture: false })).toMatchObject({
      ...{ kind: 'approved', providerData: { subStatus: 'authorized' } },
    });
    const money = { minorUnits: 0n, currency: 'USD' };
    const verified = tokenAttempt('APPLE_PAY', '{"a":"sandbox"}', { money }, { verify: true });
    expect(await connect().pay(verified)).toMatchObject({ kind: 'approved', card: WALLET_CARD });
    expect(await pay(`sandbox${'x'.repeat(16_000)}`)).toMatchObject({ kind: 'approved' });
  });

  it('a token is not stored by the provider', async () => {
    await pay('sandbox canary-7f3a');
    const rows = await provider.query("SELECT 1 FROM sandbox.ledger l WHERE l::text LIKE '%canary-7f3a%'");
    expect(rows).toEqual([]);
  });
});
