import { describe, expect, it } from 'vitest';
import { PROTOCOLS, type Reply } from '../support/api-clients.ts';
import { clients, onService, server, tables } from '../support/on-service.ts';
import { ACCOUNT_ONE, headersOne, type RequestJson, withField } from '../support/payment-requests.ts';

onService();

const PLACES: Readonly<Record<string, readonly [country: string, currency: string, value: number]>> = {
  PIX: ['BR', 'BRL', 52],
  BOLETO: ['BR', 'BRL', 120],
  OXXO: ['MX', 'MXN', 300],
  PSE: ['CO', 'COP', 50_000],
};

function payment(type: string, fields: RequestJson = {}): RequestJson {
  const [country, currency, value] = PLACES[type] ?? ['US', 'USD', 30];
  const plain = {
    ...{ account_id: ACCOUNT_ONE, merchant_order_id: 'local-1', country, amount: { currency, value } },
    payment_method: { type },
  };
  return Object.entries(fields).reduce<RequestJson>((all, [path, one]) => withField(all, path, one), plain);
}

const TRANSFER = 'payment_method.detail.bank_transfer';
const TICKET = 'payment_method.detail.ticket';
const WALLET = 'payment_method.detail.wallet';
const TOKEN = `${WALLET}.payment_token`;
const CANARY = 'ZQ7CANARY7QZ';
const token = (text = 'sandbox') => JSON.stringify({ signature: text });

const told = ({ reason, fields }: Reply) => [reason, fields.map(({ field, code }) => `${field} ${code}`)];

/** Expects the same refusal over every protocol, without a payment. */
async function expectRefusal(request: RequestJson, reason: string, fields: readonly string[]): Promise<void> {
  const before = await tables.counts();
  for (const protocol of PROTOCOLS) {
    const reply = await clients.create(protocol, request, headersOne());
    expect([protocol, ...told(reply)]).toEqual([protocol, reason, fields]);
    expect(reply.raw).not.toContain(CANARY);
  }
  expect(await tables.counts()).toEqual(before);
}

const payer = (...names: string[]) => names.map((name) => `customer_payer.${name} REQUIRED`);

describe('what a method needs', () => {
  it.each([
    [
      'BOLETO',
      {},
      [
        ...payer('first_name', 'last_name', 'document.document_type', 'document.document_number'),
        ...payer(...['address_line_1', 'city', 'state', 'zip_code'].map((name) => `billing_address.${name}`)),
      ],
    ],
    ['OXXO', { 'customer_payer.first_name': 'ANA' }, payer('last_name', 'email')],
    [
      'PSE',
      { [`${TRANSFER}.account_type`]: 'SAVINGS' },
      [
        `${TRANSFER}.bank_id REQUIRED`,
        ...payer('first_name', 'last_name', 'email', 'ip_address', 'phone.number'),
        ...payer('document.document_type', 'document.document_number'),
      ],
    ],
    ['GOOGLE_PAY', {}, [`${TOKEN} REQUIRED`]],
    ['APPLE_PAY', { [TOKEN]: '' }, [`${TOKEN} REQUIRED`]],
  ])('one refusal names every field that a payment by %s with %j lacks', async (type, fields, lacking) => {
    await expectRefusal(payment(type, fields), 'OPERATION_NOT_SUPPORTED', lacking);
  });

  it('a document of another type is refused together with what is missing', async () => {
    const request = payment('BOLETO', {
      ...{ 'customer_payer.first_name': 'ANA', 'customer_payer.last_name': 'GOMEZ' },
      'customer_payer.document': { document_type: 'DNI', document_number: '1234567' },
      'customer_payer.billing_address': { address_line_1: 'Rua A 1', city: 'Recife', state: 'PE' },
    });
    await expectRefusal(request, 'OPERATION_NOT_SUPPORTED', [
      'customer_payer.document.document_type NOT_ALLOWED',
      'customer_payer.billing_address.zip_code REQUIRED',
    ]);
  });
});

describe('the range of a method', () => {
  const inMinutes = (minutes: number) => new Date(Date.now() + minutes * 60_000).toISOString();
  const DAY = 1_440;

  it.each([
    ['PIX', `${TRANSFER}.expires_at`, -1, 'must be from 1 minute to 30 days from now for PIX payments'],
    ['PIX', `${TRANSFER}.expires_at`, 31 * DAY, 'must be from 1 minute to 30 days from now for PIX payments'],
    ['BOLETO', `${TICKET}.expires_at`, 30, 'must be from 1 hour to 60 days from now for BOLETO payments'],
    ['OXXO', `${TICKET}.expires_at`, 8 * DAY, 'must be from 1 hour to 7 days from now for OXXO payments'],
  ])(
    'an expiry of %s at %s in %d minutes is refused with the range',
    async (type, field, minutes, message) => {
      for (const protocol of PROTOCOLS) {
        const request = payment(type, { [field]: inMinutes(minutes) });
        const { fields } = await clients.create(protocol, request, headersOne());
        expect(fields.find((one) => one.field === field)).toEqual({ field, code: 'OUT_OF_RANGE', message });
      }
    },
  );

  it('an expiry outside the range alone is INVALID_PARAMETERS', async () => {
    const request = payment('PIX', { [`${TRANSFER}.expires_at`]: inMinutes(-1) });
    await expectRefusal(request, 'INVALID_PARAMETERS', [`${TRANSFER}.expires_at OUT_OF_RANGE`]);
  });

  it('an amount above the greatest is refused with the range', async () => {
    const request = payment('BOLETO', { 'amount.value': 100_000_000 });
    const { fields } = await clients.create('rest', request, headersOne());
    const message = 'must be at most 99999999.99 for BOLETO payments';
    expect(fields).toContainEqual({ field: 'amount.value', code: 'OUT_OF_RANGE', message });
  });

  it('a bank that the method does not have is refused with the banks', async () => {
    const request = payment('PSE', {
      [`${TRANSFER}.bank_id`]: '9999',
      ...{ 'customer_payer.first_name': 'ANA', 'customer_payer.last_name': 'GOMEZ' },
      ...{ 'customer_payer.email': 'ana@shop.example', 'customer_payer.ip_address': '192.0.2.7' },
      'customer_payer.phone': { country_code: '57', number: '3001234567' },
      'customer_payer.document': { document_type: 'CC', document_number: '123456' },
    });
    await expectRefusal(request, 'INVALID_PARAMETERS', [`${TRANSFER}.bank_id NOT_ALLOWED`]);
    const [refused] = (await clients.create('rest', request, headersOne())).fields;
    expect(refused?.message).toBe('must be one of 1901, 1902, 1903 for PSE payments');
    const known = withField(request, `${TRANSFER}.bank_id`, '1901');
    expect((await clients.create('rest', known, headersOne())).reason).toBeUndefined();
  });

  it('a country or a currency in which the method is not offered is refused', async () => {
    const reason = 'PAYMENT_METHOD_NOT_AVAILABLE';
    await expectRefusal(payment('PIX', { country: 'US' }), reason, ['country NOT_ALLOWED']);
    await expectRefusal(payment('PIX', { 'amount.currency': 'USD' }), reason, [
      'amount.currency NOT_ALLOWED',
    ]);
  });

  it.each(['2026-12-01T10:00:00', '2026-12-01 10:00:00', '2026-12-01', 'tomorrow', '2026-12-01 10:00 -03'])(
    'the expiry %s is refused in JSON, since it has no offset or is no time',
    async (text) => {
      for (const [type, group] of [
        ['PIX', TRANSFER],
        ['OXXO', TICKET],
      ] as const) {
        const body = JSON.stringify(payment(type, { [`${group}.expires_at`]: text }));
        const reply = await clients.send('rest', body, headersOne());
        expect(told(reply)).toEqual(['INVALID_PARAMETERS', [`${group}.expires_at INVALID_FORMAT`]]);
        expect((await clients.send('connectJson', body, headersOne())).reason).toBe('INVALID_PARAMETERS');
      }
    },
  );

  it('an expiry with an offset, and over REST with a space, is taken', async () => {
    const at = inMinutes(600).slice(0, 19);
    for (const text of [
      `${at}Z`,
      `${at}+00:00`,
      `${at.replace('T', ' ')}Z`,
      `${at.replace('T', ' ')}+00:00`,
    ]) {
      const body = JSON.stringify(payment('PIX', { [`${TRANSFER}.expires_at`]: text }));
      const { record, raw } = await clients.send('rest', body, headersOne());
      expect(record, raw).not.toBe('');
      const { bank_transfer } = JSON.parse(record).payment_method.payment_method_detail;
      expect(bank_transfer.expires_at).toBe(`${at}.000000Z`);
    }
    for (const protocol of PROTOCOLS) {
      const request = payment('PIX', { [`${TRANSFER}.expires_at`]: `${at}Z` });
      expect((await clients.create(protocol, request, headersOne())).reason).toBeUndefined();
    }
  });
});

describe('refused fields', () => {
  it.each([
    ...['bank_account', 'routing_number', 'code', 'branch', 'branch_digit', 'third_party_token_id'],
    ...[
      'beneficiary_name',
      'beneficiary_type',
      'account_holder_type',
      'soft_descriptor',
      'stored_credentials',
    ],
    ...['mandate', 'bank_account_mask_number', 'pre_debit_notification_id', 'payment_token'],
  ])('bank_transfer.%s is refused by name', async (name) => {
    const field = `${TRANSFER}.${name}`;
    await expectRefusal(payment('PIX', { [field]: CANARY }), 'NOT_SUPPORTED', [`${field} NOT_SUPPORTED`]);
  });

  it.each(['benefit_type', 'payment_token'])('ticket.%s is refused by name', async (name) => {
    const field = `${TICKET}.${name}`;
    await expectRefusal(payment('OXXO', { [field]: CANARY }), 'NOT_SUPPORTED', [`${field} NOT_SUPPORTED`]);
  });

  it('all are named at once', async () => {
    const fields = { [`${TRANSFER}.mandate`]: { id: 1 }, [`${TRANSFER}.beneficiary_name`]: CANARY };
    const reply = await clients.create('rest', payment('PIX', fields), headersOne());
    expect(reply.fields.map(({ field }) => field).sort()).toEqual(Object.keys(fields).sort());
  });

  it.each([
    ['PIX', 'payment_method.detail.card', {}],
    ['PIX', WALLET, { payment_token: token(CANARY) }],
    ['PIX', TICKET, {}],
    ['OXXO', TRANSFER, {}],
    ['CARD', TRANSFER, {}],
    ['GOOGLE_PAY', TICKET, {}],
  ])('%s takes no %s', async (type, field, value) => {
    await expectRefusal(payment(type, { [field]: value }), 'INVALID_PARAMETERS', [`${field} NOT_ALLOWED`]);
  });

  it('a local method pays later, so DIRECT is refused', async () => {
    const request = payment('PIX', { workflow: 'DIRECT' });
    await expectRefusal(request, 'INVALID_PARAMETERS', ['workflow NOT_ALLOWED']);
  });
});

describe('a payer in a checkout session', () => {
  const send = async (path: string, body: RequestJson, headers: Record<string, string>) => {
    const init = { method: 'POST', headers: { ...headers, 'content-type': 'application/json' } };
    const response = await fetch(server.url + path, { ...init, body: JSON.stringify(body) });
    // biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary fields of the response.
    return (await response.json()) as any;
  };
  const open = async (country: string, currency: string) => {
    const terms = { account_id: ACCOUNT_ONE, merchant_order_id: 'local-2', country };
    const session = { ...terms, amount: { currency, value: 300 } };
    return (await send('/v1/checkout/sessions', session, headersOne())).checkout_session;
  };
  const pay = async (session: string, payment_method: RequestJson) => {
    const { 'private-secret-key': _, ...headers } = headersOne();
    return send(`/v1/checkout/sessions/${session}/payments`, { payment_method }, headers);
  };

  it.each([
    ['capture', false],
    ['soft_descriptor', 'SHOP'],
    ['stored_credentials', { reason: 'CARD_ON_FILE', usage: 'FIRST' }],
  ])('decides nothing about a wallet’s token with %s', async (name, value) => {
    const wallet = { payment_token: token(`sandbox${CANARY}`), [name]: value };
    const refused = await pay(await open('US', 'USD'), { type: 'GOOGLE_PAY', detail: { wallet } });
    expect(refused.errors).toMatchObject([{ field: `${WALLET}.${name}`, code: 'NOT_ALLOWED' }]);
    expect(JSON.stringify(refused)).not.toContain(CANARY);
  });

  it('is told every field that a method needs, and can then pay another way', async () => {
    const session = await open('MX', 'MXN');
    const refused = await pay(session, { type: 'OXXO' });
    expect(refused).toMatchObject({ code: 'OPERATION_NOT_SUPPORTED' });
    const named = refused.errors.map(
      ({ field, code }: { field: string; code: string }) => `${field} ${code}`,
    );
    expect(named).toEqual(payer('first_name', 'last_name', 'email'));
    const redirect_url = expect.stringMatching(/\/v1\/payments\/[^/]+\/pay$/);
    expect(await pay(session, { type: 'SPEI' })).toMatchObject({ status: 'READY_TO_PAY', redirect_url });
  });
});

describe('the token of a wallet', () => {
  it.each([
    ['text that is no JSON', CANARY, 'INVALID_FORMAT'],
    ['no object', JSON.stringify([CANARY]), 'INVALID_FORMAT'],
    ['a JSON string', JSON.stringify(CANARY), 'INVALID_FORMAT'],
    ['an object that ends early', token(CANARY).slice(0, -1), 'INVALID_FORMAT'],
    ['more than 16 KiB', token(CANARY + 'x'.repeat(16_384)), 'TOO_LONG'],
  ])('%s is refused', async (_what, text, code) => {
    await expectRefusal(payment('GOOGLE_PAY', { [TOKEN]: text }), 'INVALID_PARAMETERS', [`${TOKEN} ${code}`]);
  });

  it('16 KiB are taken', async () => {
    const text = token(`sandbox${'x'.repeat(16_384 - token('sandbox').length)}`);
    expect(text).toHaveLength(16_384);
    for (const protocol of PROTOCOLS) {
      const { record, raw } = await clients.create(
        protocol,
        payment('GOOGLE_PAY', { [TOKEN]: text }),
        headersOne(),
      );
      expect(JSON.parse(record).status, raw).toBe('SUCCEEDED');
    }
  });

  it('JSON in place of its text is refused', async () => {
    const body = JSON.stringify(payment('GOOGLE_PAY', { [TOKEN]: { signature: CANARY } }));
    const reply = await clients.send('rest', body, headersOne());
    expect(told(reply)).toEqual(['INVALID_PARAMETERS', [`${TOKEN} INVALID_TYPE`]]);
    expect(reply.raw).not.toContain(CANARY);
  });

  it('is refused with REDIRECT', async () => {
    const sent = { [TOKEN]: token(CANARY), workflow: 'REDIRECT' };
    await expectRefusal(payment('GOOGLE_PAY', sent), 'INVALID_PARAMETERS', ['workflow NOT_ALLOWED']);
    const both = payment('WALLET_E', sent);
    await expectRefusal(both, 'INVALID_PARAMETERS', [`${TOKEN} NOT_ALLOWED`]);
  });

  it('of a wallet that no connection takes tokens of is not supported', async () => {
    const request = payment('WALLET_E', { [TOKEN]: token(CANARY), workflow: 'DIRECT' });
    await expectRefusal(request, 'OPERATION_NOT_SUPPORTED', ['payment_method.type NOT_SUPPORTED']);
  });

  it('stands alone, and cannot be stored', async () => {
    const sent = { [TOKEN]: token(CANARY) };
    const stored = payment('GOOGLE_PAY', { ...sent, 'payment_method.vault_on_success': true });
    await expectRefusal(stored, 'INVALID_PARAMETERS', ['payment_method.vault_on_success NOT_ALLOWED']);
  });

  it.each([
    ['GOOGLE_PAY', 'payment_token'],
    ['GOOGLE_PAY', 'payment_method.payment_token'],
    ['GOOGLE_PAY', 'payment_method.detail.payment_token'],
  ])('of %s is refused in JSON as %s', async (type, field) => {
    const body = JSON.stringify(payment(type, { [field]: token(CANARY) }));
    for (const protocol of ['rest', 'connectJson'] as const) {
      const reply = await clients.send(protocol, body, headersOne());
      expect(told(reply)).toEqual(['NOT_SUPPORTED', [`${field} NOT_SUPPORTED`]]);
      expect(reply.raw).not.toContain(CANARY);
    }
  });

  it('of a card is refused', async () => {
    const field = 'payment_method.detail.card.payment_token';
    await expectRefusal(payment('CARD', { [field]: token(CANARY) }), 'NOT_SUPPORTED', [
      `${field} NOT_SUPPORTED`,
    ]);
  });
});
