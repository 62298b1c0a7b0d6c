import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { PROTOCOLS, type Reply } from '../support/api-clients.ts';
import { clients, onService, tables } from '../support/on-service.ts';
import {
  ACCOUNT_TWO,
  CARD_DATA,
  cardPayment,
  headersOne,
  headersTwo,
  type RequestJson,
  VAULTED_CARD,
  walletPayment,
  withField,
} from '../support/payment-requests.ts';

// Repeats wait 0.3 s for the first request.
onService({ config: { inProgressWaitMs: 300 } });

const idOf = (reply: Reply) => JSON.parse(reply.record).id as string;
const replayed = (reply: Reply) => reply.headers.get('idempotent-replayed');

/** Returns the growth of a number while the work runs. */
async function grown(work: () => Promise<void>): Promise<{ payments: number; charges: number }> {
  const before = await tables.counts();
  await work();
  const after = await tables.counts();
  return { payments: after.payments - before.payments, charges: after.charges - before.charges };
}

const OUTCOMES = {
  approved: [cardPayment(), 'SUCCEEDED', 1],
  redirected: [walletPayment(), 'READY_TO_PAY', 1],
  declined: [cardPayment('4000000000000002'), 'DECLINED', 1],
  unknown: [cardPayment('4000000000003006'), 'PENDING', 1],
  'not sent': [cardPayment('4000000000005001'), 'ERROR', 0],
} satisfies Record<string, [RequestJson, string, number]>;

describe('a repeat of the same request', () => {
  const cases = Object.entries(OUTCOMES).flatMap(([name, outcome]) =>
    PROTOCOLS.map((protocol) => ({ name, protocol, outcome })),
  );

  it.each(cases)(
    'a repeat of a payment $name over $protocol gets the first response, over every protocol',
    async (one) => {
      const [request, status, charges] = one.outcome;
      const headers = headersOne();
      const growth = await grown(async () => {
        const first = await clients.create(one.protocol, request, headers);
        expect(JSON.parse(first.record).status).toBe(status);
        expect(replayed(first)).toBeNull();
        for (const protocol of PROTOCOLS) {
          const repeat = await clients.create(protocol, request, headers);
          // REST stores the bytes that it received; the others store the message, encoded as REST would.
          expect(repeat.record).toBe(first.record);
          expect(replayed(repeat)).toBe('true');
          if (protocol === 'rest') {
            expect(repeat.status).toBe(201);
            expect(repeat.headers.get('location')).toBe(`/v1/payments/${idOf(first)}`);
          }
        }
      });
      expect(growth).toEqual({ payments: 1, charges });
    },
  );

  it('a repeat is recognized by its content, not by its form', async () => {
    const headers = headersOne();
    const request = cardPayment();
    const first = await clients.create('rest', request, headers);
    const spellings = [
      JSON.stringify(request, null, 2),
      JSON.stringify(Object.fromEntries(Object.entries(request).reverse())),
      JSON.stringify(request).replace('"value":10', '"value":"10"'),
      JSON.stringify(request).replace('"value":10', '"value":10.00'),
      JSON.stringify(request).replace('737', '999'),
      JSON.stringify({ ...request, merchant_reference: null, nobody_knows: 1 }),
    ];
    for (const body of spellings) {
      for (const protocol of ['rest', 'connectJson'] as const) {
        // Connect may refuse or ignore unknown fields, and we ignore them; it must accept the other forms.
        expect((await clients.send(protocol, body, headers)).record).toBe(first.record);
      }
    }
  });

  const EMPTY = {
    callback_url: '',
    checkout: { session: '' },
    customer_payer: {
      ...{ id: '', merchant_customer_id: '', device_fingerprint: '', email: '' },
      browser_info: { user_agent: '' },
    },
  };

  it.each(PROTOCOLS)(
    'a repeat over %s is recognized even if it omits identifiers that were empty strings',
    async (protocol) => {
      const headers = headersOne();
      const first = await clients.create(protocol, { ...cardPayment(), ...EMPTY }, headers);
      for (const other of PROTOCOLS) {
        expect((await clients.create(other, cardPayment(), headers)).record).toBe(first.record);
      }
      const { checkout, customer_payer } = JSON.parse(first.record);
      expect([checkout.session, customer_payer.id]).toEqual(['', null]);
    },
  );

  it.each([2, '2', '2.0'])(
    "a repeat over every protocol is recognized if it writes an item's quantity as %j",
    async (quantity) => {
      const headers = headersOne();
      const items = (of: unknown) =>
        withField(cardPayment(), 'additional_data.order.items', [{ quantity: of }]);
      const first = await clients.create('rest', items(2), headers);
      for (const protocol of PROTOCOLS) {
        expect((await clients.create(protocol, items(quantity), headers)).record).toBe(first.record);
      }
      expect((await clients.create('grpc', items(2.5), headers)).reason).toBe('IDEMPOTENCY_KEY_REUSED');
    },
  );

  it('a repeat is not refused if another release, which reads fields differently, claimed its key', async () => {
    const headers = headersOne();
    const first = await clients.create('rest', cardPayment(), headers);
    await tables.query('UPDATE payment SET request_hash = $2, request_shape = $3 WHERE id = $1', [
      idOf(first),
      Buffer.alloc(32, 1),
      Buffer.from('1ad995866992fecec288f2630f875c94', 'hex'),
    ]);
    const unsupported = withField(cardPayment(), 'payment_method.detail.card.installments_type', 'ISSUER');
    const requests = [cardPayment(), { ...cardPayment(), ...EMPTY }, unsupported];
    for (const protocol of PROTOCOLS) {
      for (const request of requests) {
        expect((await clients.create(protocol, request, headers)).record).toBe(first.record);
      }
    }
    await tables.query('UPDATE payment SET response = NULL WHERE id = $1', [idOf(first)]);
    for (const request of requests) {
      expect((await clients.create('rest', request, headers)).reason).toBe('REQUEST_IN_PROGRESS');
    }
  });

  it('a repeat gets the first response even if the resources that the payment used are gone', async () => {
    const token = randomUUID();
    await tables.query(
      `INSERT INTO vaulted_token (id, account_id, type, provider_token, connection_id, active)
       SELECT $1, account_id, type, provider_token, connection_id, true FROM vaulted_token WHERE type = 'WALLET_C_ENROLLMENT'`,
      [token],
    );
    const request = {
      ...walletPayment(),
      ...{ country: 'MX', amount: { currency: 'MXN', value: 5 }, workflow: 'DIRECT' },
      payment_method: { type: 'WALLET_C_ENROLLMENT', vaulted_token: token },
    };
    const headers = headersOne();
    const first = await clients.create('rest', request, headers);
    expect(JSON.parse(first.record).status).toBe('PENDING');
    await tables.query('DELETE FROM vaulted_token WHERE id = $1', [token]);

    for (const protocol of PROTOCOLS) {
      expect((await clients.create(protocol, request, headers)).record).toBe(first.record);
    }
    expect((await clients.create('rest', withField(request, 'description', 'x'), headers)).reason).toBe(
      'IDEMPOTENCY_KEY_REUSED',
    );
    expect((await clients.create('rest', request, headersOne())).reason).toBe('VAULTED_TOKEN_NOT_FOUND');
  });
});

describe('a used key', () => {
  it.each(PROTOCOLS)(
    'a used key is refused for a different request over %s, and nothing is sent',
    async (protocol) => {
      const headers = headersOne();
      const first = await clients.create('rest', cardPayment(), headers);
      const growth = await grown(async () => {
        for (const other of [
          withField(cardPayment(), 'amount.value', 10.01),
          withField(cardPayment(), `${CARD_DATA}.number`, '4111111111111111'),
          { ...cardPayment(), payment_method: { type: 'CARD', vaulted_token: VAULTED_CARD } },
        ]) {
          const refused = await clients.create(protocol, other, headers);
          expect(refused).toMatchObject({
            reason: 'IDEMPOTENCY_KEY_REUSED',
            fields: [{ field: 'x-idempotency-key', code: 'NOT_ALLOWED' }],
            ...(protocol === 'rest' ? { status: 422 } : { code: 'FailedPrecondition' }),
          });
          expect(refused.raw).not.toContain(headers['x-idempotency-key']);
        }
      });
      expect(growth).toEqual({ payments: 0, charges: 0 });
      expect((await clients.create('rest', cardPayment(), headers)).record).toBe(first.record);
    },
  );

  it('a used key can be used by another account', async () => {
    const key = randomUUID();
    const growth = await grown(async () => {
      const one = await clients.create('rest', cardPayment(), headersOne(key));
      const theirs = { ...cardPayment(), account_id: ACCOUNT_TWO };
      const two = await clients.create('grpc', theirs, headersTwo(key));
      expect(replayed(two)).toBeNull();
      expect(idOf(two)).not.toBe(idOf(one));
    });
    expect(growth).toEqual({ payments: 2, charges: 2 });
  });
});

describe.each(PROTOCOLS)('the key over %s', (protocol) => {
  it('a payment requires a key of 1 to 255 printable ASCII characters', async () => {
    const { 'x-idempotency-key': _none, ...keyless } = headersOne();
    const growth = await grown(async () => {
      for (const headers of [keyless, headersOne(''), headersOne('x'.repeat(256)), headersOne('caf\u00e9')]) {
        const refused = await clients.create(protocol, cardPayment(), headers);
        expect(refused).toMatchObject({
          reason: 'IDEMPOTENCY_KEY_MISSING',
          fields: [{ field: 'x-idempotency-key' }],
          ...(protocol === 'rest' ? { status: 400 } : { code: 'InvalidArgument' }),
        });
        expect(refused.raw).not.toMatch(/x{256}|caf\u00e9/);
      }
      const longest = headersOne(`${randomUUID()}!~ ${'x'.repeat(216)}`);
      expect(longest['x-idempotency-key']).toHaveLength(255);
      expect((await clients.create(protocol, cardPayment(), longest)).record).not.toBe('');
    });
    expect(growth).toEqual({ payments: 1, charges: 1 });
  });

  it('a refused request leaves its key unused', async () => {
    const headers = headersOne();
    const send = (request: RequestJson, other = {}) =>
      clients.create(protocol, request, { ...headers, ...other });
    const refusals = [
      await send(withField(cardPayment(), 'amount.value', 0)),
      await send(withField(cardPayment(), 'payment_method.type', 'CASH')),
      await send(withField(cardPayment(), 'customer_payer.id', randomUUID())),
      await send(cardPayment(), { 'private-secret-key': 'sk_wrong' }),
      await send(withField(cardPayment(), 'account_id', ACCOUNT_TWO)),
      await clients.send(protocol, Buffer.alloc(300 * 1024, ' '), headers),
      await clients.send(protocol, Buffer.alloc(20, 0xff), headers),
    ];
    expect(refusals.map(({ reason }) => reason)).toEqual([
      ...['INVALID_PARAMETERS', 'PAYMENT_METHOD_NOT_AVAILABLE', 'CUSTOMER_NOT_FOUND', 'INVALID_CREDENTIALS'],
      ...['AUTHORIZATION_REQUIRED', 'REQUEST_TOO_LARGE', 'INVALID_REQUEST'],
    ]);
    const accepted = await send(cardPayment());
    expect([replayed(accepted), JSON.parse(accepted.record).status]).toEqual([null, 'SUCCEEDED']);
  });
});

describe('a key of a caller with only the public key', () => {
  const publicOnly = (key: string) => ({ 'public-api-key': 'pk_sandbox_one', 'x-idempotency-key': key });

  it('a key of a public caller differs from the merchant’s key of the same name, and does not reveal it', async () => {
    const key = randomUUID();
    const page = await clients.create('rest', walletPayment(), publicOnly(key));
    const merchant = await clients.create('rest', cardPayment(), headersOne(key));
    expect([page.reason, merchant.reason, replayed(merchant)]).toEqual([undefined, undefined, null]);
    expect(idOf(page)).not.toBe(idOf(merchant));
    // Nor vice versa: a page learns nothing about the keys that the merchant used.
    const used = randomUUID();
    await clients.create('rest', cardPayment(), headersOne(used));
    expect((await clients.create('rest', walletPayment(), publicOnly(used))).reason).toBeUndefined();
  });

  it('a public call that requires the secret gets the same refusal for used and unused keys', async () => {
    const used = randomUUID();
    await clients.create('rest', walletPayment(), publicOnly(used));
    for (const protocol of PROTOCOLS) {
      for (const key of [used, randomUUID()]) {
        const reply = await clients.create(protocol, cardPayment(), publicOnly(key));
        expect([reply.reason, replayed(reply)]).toEqual(['INVALID_CREDENTIALS', null]);
      }
    }
  });

  it('a payment by a public caller is replayed to public callers over every protocol', async () => {
    const key = randomUUID();
    const first = await clients.create('rest', walletPayment(), publicOnly(key));
    for (const protocol of PROTOCOLS) {
      const again = await clients.create(protocol, walletPayment(), publicOnly(key));
      expect([again.record, replayed(again)]).toEqual([first.record, 'true']);
    }
  });
});
