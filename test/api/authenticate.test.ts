import { createHash, randomUUID } from 'node:crypto';
import { describe, expect, it, vi } from 'vitest';
import { createAuthenticate } from '#src/api/authenticate.ts';
import type { AccountKeys } from '#src/store/tables/accounts.ts';
import { PROTOCOLS, type Reply } from '../support/api-clients.ts';
import { clients, onService, tables } from '../support/on-service.ts';
import {
  ACCOUNT_ONE,
  ACCOUNT_TWO,
  CHECKOUT_SESSION,
  CUSTOMER,
  cardPayment,
  ENROLLED_WALLET,
  headersOne,
  headersTwo,
  VAULTED_CARD,
  walletPayment,
  withField,
} from '../support/payment-requests.ts';

onService();

type Keys = Record<string, string>;
const keys = (headers: Keys): Keys => ({ 'x-idempotency-key': randomUUID(), ...headers });
const publicOnly = (publicKey = 'pk_sandbox_one') => keys({ 'public-api-key': publicKey });
const pair = (publicKey: string, secret: string) =>
  keys({ 'public-api-key': publicKey, 'private-secret-key': secret });

/** Returns a refusal as the caller sees it, without the parts that differ in every response. */
function seen(reply: Reply): unknown {
  const body = reply.raw.replace(/[0-9a-f]{24}/g, '<request id>').replace(/\ndate: .*/g, '');
  return { status: reply.status, code: reply.code, reason: reply.reason, fields: reply.fields, body };
}

describe.each(PROTOCOLS)('bad credentials over %s', (protocol) => {
  it('all invalid credentials get the same response, even with a body that cannot be read', async () => {
    const before = await tables.counts();
    const refusals = [
      await clients.create(protocol, cardPayment(), keys({})),
      await clients.create(protocol, cardPayment(), keys({ 'private-secret-key': 'sk_sandbox_one' })),
      await clients.create(protocol, cardPayment(), pair('pk_unknown', 'sk_sandbox_one')),
      await clients.create(protocol, cardPayment(), pair('pk_sandbox_one', 'sk_wrong')),
      await clients.create(protocol, cardPayment(), pair('pk_sandbox_one', 'sk_sandbox_two')),
      await clients.create(protocol, cardPayment(), pair('sk_sandbox_one', 'pk_sandbox_one')),
      await clients.create(protocol, cardPayment(), pair('pk_sandbox_one, pk_sandbox_one', 'sk_sandbox_one')),
      await clients.create(protocol, cardPayment(), pair('pk_sandbox_one', 'sk_sandbox_one,sk_sandbox_one')),
      await clients.create(protocol, cardPayment(), pair('pk_sandbox_one', 'x'.repeat(300))),
      await clients.create(protocol, cardPayment(), pair('x'.repeat(300), 'sk_sandbox_one')),
      await clients.create(protocol, walletPayment(), pair('pk_sandbox_one', 'sk_wrong')),
      await clients.create(protocol, walletPayment(), pair('pk_sandbox_one', '')),
      await clients.create(protocol, cardPayment(), publicOnly()),
      await clients.send(protocol, 'neither JSON nor a message', pair('pk_sandbox_one', 'sk_wrong')),
    ];
    for (const refusal of refusals) expect(seen(refusal)).toEqual(seen(refusals[0] as Reply));
    expect(refusals[0]).toMatchObject({
      reason: 'INVALID_CREDENTIALS',
      ...(protocol === 'rest' ? { status: 401 } : { code: 'Unauthenticated' }),
    });
    expect(refusals.map(({ raw }) => raw).join()).not.toMatch(/sk_|pk_/);
    expect(await tables.counts()).toEqual(before);
  });

  it('credentials of an account other than the one in the request are forbidden', async () => {
    const reply = await clients.create(protocol, cardPayment(), headersTwo());
    expect(reply).toMatchObject({
      reason: 'AUTHORIZATION_REQUIRED',
      fields: [{ field: 'account_id' }],
      ...(protocol === 'rest' ? { status: 403 } : { code: 'PermissionDenied' }),
    });
    const nobody = withField(cardPayment(), 'account_id', randomUUID());
    expect((await clients.create(protocol, nobody, headersOne())).reason).toBe('AUTHORIZATION_REQUIRED');
  });
});

describe('the public key alone', () => {
  it.each(PROTOCOLS)(
    'the public key alone may start a redirect without stored objects, over %s',
    async (protocol) => {
      const reply = await clients.create(protocol, walletPayment(), publicOnly());
      expect(JSON.parse(reply.record)).toMatchObject({ status: 'READY_TO_PAY', account_id: ACCOUNT_ONE });
    },
  );

  it.each([
    ['a card', cardPayment()],
    ['a vaulted card', { ...cardPayment(), payment_method: { type: 'CARD', vaulted_token: VAULTED_CARD } }],
    ['an unknown token', { ...cardPayment(), payment_method: { type: 'CARD', vaulted_token: randomUUID() } }],
    ['a stored customer', withField(walletPayment(), 'customer_payer.id', CUSTOMER)],
    ['a checkout session', withField(walletPayment(), 'checkout.session', CHECKOUT_SESSION)],
    ['a stored token', withField(walletPayment(), 'payment_method.vaulted_token', ENROLLED_WALLET)],
    [
      'a wallet in the DIRECT workflow',
      { ...walletPayment(), workflow: 'DIRECT', payment_method: { type: 'WALLET_E' } },
    ],
  ])('the public key alone may not use %s', async (_name, request) => {
    const reply = await clients.create('rest', request, publicOnly());
    expect([reply.status, reply.reason]).toEqual([401, 'INVALID_CREDENTIALS']);
  });

  it('the public key alone is refused for an account that lets it do nothing', async () => {
    const wallet = { ...walletPayment(), account_id: ACCOUNT_TWO };
    const accepted = await clients.create('rest', wallet, publicOnly('pk_sandbox_two'));
    expect(accepted.status).toBe(201);

    // A different public key, because the service caches the first one for a few seconds.
    await tables.query("UPDATE account SET public_key_may = 'NOTHING' WHERE id = $1", [ACCOUNT_TWO]);
    await tables.query("INSERT INTO public_key (public_key, account_id) VALUES ('pk_always', $1)", [
      ACCOUNT_TWO,
    ]);
    const refused = await clients.create('rest', wallet, publicOnly('pk_always'));
    expect([refused.status, refused.reason]).toEqual([403, 'AUTHORIZATION_REQUIRED']);
    expect((await clients.create('rest', wallet, pair('pk_always', 'sk_sandbox_two'))).status).toBe(201);
    await tables.query("UPDATE account SET public_key_may = 'PAYMENTS' WHERE id = $1", [ACCOUNT_TWO]);
  });
});

describe('objects of another account', () => {
  it.each([
    ['customer_payer.id', CUSTOMER, 'CUSTOMER_NOT_FOUND'],
    ['checkout.session', CHECKOUT_SESSION, 'CHECKOUT_SESSION_NOT_FOUND'],
    ['payment_method', { type: 'CARD', vaulted_token: VAULTED_CARD }, 'VAULTED_TOKEN_NOT_FOUND'],
  ])('%s of another account gets the same response as an unknown one', async (path, value, reason) => {
    const request = { ...cardPayment(), account_id: ACCOUNT_TWO };
    const theirs = await clients.create('rest', withField(request, path, value), headersTwo());
    expect([theirs.status, theirs.reason]).toEqual([400, reason]);

    const nobodys = typeof value === 'string' ? randomUUID() : { ...value, vaulted_token: randomUUID() };
    const unknown = await clients.create('rest', withField(request, path, nobodys), headersTwo());
    expect(seen(unknown)).toEqual(seen(theirs));
  });

  it.each(['not-a-uuid', "' OR 1=1 --", '00000000-0000-0000-0000-000000000000', '{}'])(
    'the malformed customer id %s gets the same error as an unknown one',
    async (id) => {
      const reply = await clients.create(
        'rest',
        withField(cardPayment(), 'customer_payer.id', id),
        headersOne(),
      );
      expect([reply.status, reply.reason]).toEqual([400, 'CUSTOMER_NOT_FOUND']);
      expect(reply.raw).not.toContain(id);
    },
  );

  it('a stored token of another payment method type is refused as INCORRECT_PAYMENT_METHOD_TYPE', async () => {
    const request = { ...cardPayment(), payment_method: { type: 'CARD', vaulted_token: ENROLLED_WALLET } };
    expect((await clients.create('rest', request, headersOne())).reason).toBe(
      'INCORRECT_PAYMENT_METHOD_TYPE',
    );
  });
});

describe('keys', () => {
  const sha256 = (text: string) => createHash('sha256').update(text).digest();

  it('an account can have several keys, and each can be revoked separately', async () => {
    await tables.query(
      "INSERT INTO public_key (public_key, account_id) VALUES ('pk_new', $1), ('pk_old', $1)",
      [ACCOUNT_ONE],
    );
    const insert = 'INSERT INTO secret_key (id, account_id, secret_hash) VALUES ($1, $2, $3)';
    const [first, second] = [randomUUID(), randomUUID()];
    await tables.query(insert, [first, ACCOUNT_ONE, sha256('sk_first')]);
    await tables.query(insert, [second, ACCOUNT_ONE, sha256('sk_second')]);
    const statusOf = async (publicKey: string, secret: string) =>
      (await clients.create('rest', cardPayment(), pair(publicKey, secret))).status;
    for (const publicKey of ['pk_new', 'pk_old']) {
      expect(await statusOf(publicKey, 'sk_first')).toBe(201);
      expect(await statusOf(publicKey, 'sk_second')).toBe(201);
    }
    // A new secret is accepted at once.
    await tables.query(insert, [randomUUID(), ACCOUNT_ONE, sha256('sk_third')]);
    expect(await statusOf('pk_new', 'sk_third')).toBe(201);

    await tables.query('UPDATE secret_key SET revoked_at = now() WHERE id = $1', [first]);
    await tables.query("UPDATE public_key SET revoked_at = now() WHERE public_key = 'pk_old'");
    // The service caches keys for five seconds, which have passed.
    const now = performance.now.bind(performance);
    vi.spyOn(performance, 'now').mockImplementation(() => now() + 5_001);
    expect(await statusOf('pk_new', 'sk_first')).toBe(401);
    expect(await statusOf('pk_old', 'sk_second')).toBe(401);
    expect(await statusOf('pk_new', 'sk_second')).toBe(201);
    expect((await clients.create('rest', cardPayment(), headersOne())).status).toBe(201);
    vi.restoreAllMocks();
  });
});

describe('authentication against the database', () => {
  const known: AccountKeys = {
    accountId: 'a',
    publicKeyMay: 'SESSIONS',
    tellsAuthorized: false,
    allowedOrigins: [],
    secretHashes: [createHash('sha256').update('secret').digest()],
  };
  const headers = (publicKey?: string, secret?: string) => (name: string) =>
    ({ 'public-api-key': publicKey, 'private-secret-key': secret })[name];

  function counted(): { authenticate: ReturnType<typeof createAuthenticate>; reads: () => number } {
    let reads = 0;
    const authenticate = createAuthenticate(async (publicKey) => {
      reads++;
      return publicKey === 'public' ? known : undefined;
    });
    return { authenticate, reads: () => reads };
  }

  it('valid keys are read from the database once, and each refusal reads the database once more', async () => {
    const { authenticate, reads } = counted();
    await authenticate(headers('public', 'secret'));
    await authenticate(headers('public', 'secret'));
    expect(reads()).toBe(1);
    for (const [publicKey, secret] of [
      ['public', 'wrong'],
      ['unknown', 'secret'],
      [undefined, undefined],
    ]) {
      const before = reads();
      await expect(authenticate(headers(publicKey, secret))).rejects.toMatchObject({
        reason: 'INVALID_CREDENTIALS',
      });
      expect(reads() - before).toBe(1);
    }
  });

  it('keys are cached for five seconds from the start of their look-up, however long it took', async () => {
    let nowMs = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
    let reads = 0;
    const authenticate = createAuthenticate(async () => {
      reads++;
      nowMs += 4_000;
      return known;
    });
    await authenticate(headers('public', 'secret'));
    nowMs += 900;
    await authenticate(headers('public', 'secret'));
    expect(reads).toBe(1);
    nowMs += 200;
    await authenticate(headers('public', 'secret'));
    expect(reads).toBe(2);
    vi.restoreAllMocks();
  });

  it('the result of a slow look-up does not replace the result of a later one', async () => {
    const { promise: slow, resolve } = Promise.withResolvers<AccountKeys>();
    const revoked: AccountKeys = { ...known, secretHashes: [] };
    const found = [slow, Promise.resolve(revoked)];
    const authenticate = createAuthenticate(async () => found.shift() ?? revoked);
    const before = authenticate(headers('public', 'secret'));
    await expect(authenticate(headers('public', 'secret'))).rejects.toMatchObject({
      reason: 'INVALID_CREDENTIALS',
    });
    resolve(known);
    await before;
    await expect(authenticate(headers('public', 'secret'))).rejects.toMatchObject({
      reason: 'INVALID_CREDENTIALS',
    });
  });

  it('authentication returns whether the account sees authorizations as such', async () => {
    const { authenticate } = counted();
    expect(await authenticate(headers('public', 'secret'))).toMatchObject({ tellsAuthorized: false });
    const told = createAuthenticate(async () => ({ ...known, tellsAuthorized: true }));
    expect(await told(headers('public', 'secret'))).toMatchObject({ tellsAuthorized: true });
    expect(await told(headers('public'))).toMatchObject({ secretPresented: false, tellsAuthorized: true });
  });

  it('no secret matches the hash that stands in for an unknown key', async () => {
    const { authenticate } = counted();
    await expect(authenticate(headers('unknown', '\0'.repeat(32)))).rejects.toMatchObject({
      reason: 'INVALID_CREDENTIALS',
    });
  });

  it('authentication returns whether the secret was sent', async () => {
    const { authenticate } = counted();
    const { secretHashes: _, ...account } = known;
    expect(await authenticate(headers('public', 'secret'))).toEqual({ ...account, secretPresented: true });
    expect(await authenticate(headers('public'))).toEqual({ ...account, secretPresented: false });
  });
});
