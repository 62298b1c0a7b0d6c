import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startFakeMercadoPago, webhookOf } from './connectors/mercado-pago/fake-mercado-pago.ts';
import { AT_FAKES, tell } from './support/fake-providers.ts';
import {
  alarmsOf,
  call,
  detailOf,
  eventsOf,
  OPEN,
  PAID,
  pay,
  read,
  request,
  statesOf,
} from './support/local-payments.ts';
import { clients, onService, server, tables } from './support/on-service.ts';
import { headersOne, type RequestJson, withField } from './support/payment-requests.ts';
import { untilNewsIsSettled } from './support/settled-news.ts';
import { wantEveryEvent } from './support/tables.ts';

/* Payments by local methods at Mercado Pago's fake, through the whole service: one account in each country. */

const ACCOUNTS = { BR: 'BRL', CO: 'COP', MX: 'MXN' } as const;
type Country = keyof typeof ACCOUNTS;
type Fake = Awaited<ReturnType<typeof startFakeMercadoPago>>;

const fakes = {} as Record<Country, Fake>;

beforeAll(async () => {
  for (const [country, currency] of Object.entries(ACCOUNTS))
    fakes[country as Country] = await startFakeMercadoPago(currency);
});
onService(() => ({
  catalogue: catalogue(),
  config: AT_FAKES,
}));
beforeAll(() => wantEveryEvent(tables));
afterAll(() => Promise.all(Object.values(fakes).map((fake) => fake.close())));
beforeEach(() => {
  for (const fake of Object.values(fakes)) fake.payments.clear();
});

function catalogue(): string {
  const connections = Object.entries(fakes).map(
    ([country, { url }]) => `
  - id: ${country.toLowerCase()}
    name: Mercado Pago
    provider_id: MERCADO_PAGO
    connector: mercado-pago
    settings: { base_url: '${url}', country: ${country}, account_id: "123456789" }
    secrets_from_environment: { access_token: MERCADO_PAGO_ACCESS_TOKEN, webhook_secret: MERCADO_PAGO_WEBHOOK_SECRET }`,
  );
  return `payment_method_types:
  - { type: PIX, category: BANK_TRANSFER, workflows: [REDIRECT] }
  - { type: PSE, category: BANK_TRANSFER, workflows: [REDIRECT] }
  - { type: BOLETO, category: TICKET, workflows: [REDIRECT] }
  - { type: OXXO, category: TICKET, workflows: [REDIRECT] }
  - { type: EFECTY, category: TICKET, workflows: [REDIRECT] }
connections:${connections.join('')}
routes:
  - { id: 1, targets: [{ connection: br }, { connection: co }, { connection: mx }] }
`;
}

const BRAZILIAN = {
  address_line_1: 'Rua das Flores, 123',
  neighborhood: 'Centro',
  city: 'São Paulo',
  state: 'SP',
  zip_code: '01310-100',
};
const COLOMBIAN = {
  address_line_1: 'Carrera 7 # 11-27',
  neighborhood: 'La Candelaria',
  city: 'Bogotá',
  zip_code: '111711',
};

/** The request of a scenario, with what Mercado Pago needs besides. */
function requestFor(name: 'pix' | 'boleto' | 'oxxo' | 'pse' | 'efecty'): RequestJson {
  const withEmail = withField(request(name), 'customer_payer.email', 'ana@example.com');
  if (name === 'boleto') return withField(withEmail, 'customer_payer.billing_address', BRAZILIAN);
  if (name !== 'pse') return withEmail;
  const withBank = withField(withEmail, 'payment_method.detail.bank_transfer.bank_id', '1007');
  return withField(withBank, 'customer_payer.billing_address', COLOMBIAN);
}

/** Makes a payment. `at` is the payment at Mercado Pago. */
async function payIn(country: Country, body: RequestJson) {
  const payment = await pay(body);
  const fake = fakes[country];
  const at = [...fake.payments.values()].at(-1);
  if (!at) throw new Error(JSON.stringify(payment));
  /** Moves the payment at Mercado Pago, which notifies the service. */
  const move = async (status: string, detail: string) => {
    fake.move(at, status, detail);
    expect(await tell(server.url, country.toLowerCase(), webhookOf(String(at.id)))).toBe(200);
    await untilNewsIsSettled(tables);
    return statesOf(await read(payment));
  };
  return { payment, fake, at, move };
}

describe('payments by local methods at Mercado Pago', () => {
  it('Pix is shown, paid, and refunded in parts, of which one waits for the central bank', async () => {
    const { payment, at, fake, move } = await payIn('BR', requestFor('pix'));
    expect(statesOf(payment)).toBe(OPEN);
    expect(detailOf(payment)).toMatchObject({
      payment_instruction: expect.stringMatching(/^000201/),
      provider_image: expect.stringMatching(/\/pay\/qr\.svg$/),
      redirect_url: expect.stringMatching(/\/pay$/),
      expires_at: expect.any(String),
    });
    expect(await move('approved', 'accredited')).toBe(PAID);
    const refund = (value: number) => call('refund', payment, { amount: { currency: 'BRL', value } });
    expect(statesOf(await refund(100))).toContain('REFUND SUCCEEDED');
    fake.holdRefunds();
    expect(statesOf(await refund(50))).toContain('REFUND PENDING');
    const [, held] = fake.refunds.get(String(at.id)) ?? [];
    Object.assign(held ?? {}, { status: 'approved' });
    at.transaction_amount_refunded = 150;
    await move('approved', 'partially_refunded');
    await expect.poll(async () => statesOf(await read(payment))).not.toContain('PENDING');
    expect((await read(payment)).sub_status).toBe('PARTIALLY_REFUNDED');
    expect(await eventsOf(payment)).toEqual([
      ...['payment.purchase', 'payment.purchase'],
      ...['payment.refund', 'payment.refund', 'payment.refund'],
    ]);
  });

  it.each([
    ['boleto', 'BR'],
    ['oxxo', 'MX'],
    ['efecty', 'CO'],
  ] as const)(
    '%s is shown and paid, and its refund is refused before anything is sent',
    async (name, country) => {
      const { payment, fake, move } = await payIn(country, requestFor(name));
      expect(statesOf(payment)).toBe(OPEN);
      expect(detailOf(payment)).toMatchObject({
        provider_number: expect.stringMatching(/^\d+$/),
        provider_barcode: expect.stringMatching(/^\d+$/),
        provider_format: 'barcode',
        redirect_url: expect.stringMatching(/\/pay$/),
      });
      expect(await move('approved', 'accredited')).toBe(PAID);
      const asked = fake.requests.length;
      expect(await call('refund', payment, {})).toMatchObject({ code: 'OPERATION_NOT_SUPPORTED' });
      expect(fake.requests).toHaveLength(asked);
    },
  );

  it('PSE redirects to the bank, which says no', async () => {
    const { payment, fake, at, move } = await payIn('CO', requestFor('pse'));
    expect(detailOf(payment).redirect_url).toBe(`${fake.url}/pse/${at.id}`);
    expect(await move('rejected', 'bank_error')).toMatch(/^DECLINED\/DECLINED, PURCHASE DECLINED /);
  });

  it('a payment is confirmed, expires by the word of Mercado Pago alone, and late money raises its alarm', async () => {
    const { payment, move } = await payIn('BR', requestFor('boleto'));
    expect(await move('in_process', 'pending_contingency')).toMatch(/^PENDING\/IN_PROCESS/);
    expect(await move('cancelled', 'expired')).toBe('EXPIRED/EXPIRED, PURCHASE EXPIRED EXPIRED');
    expect(await move('approved', 'accredited')).toBe(PAID);
    expect(alarmsOf(payment)).toEqual(['late_payment']);
  });

  it('a merchant cancels an unpaid payment at Mercado Pago', async () => {
    const { payment, at } = await payIn('BR', requestFor('boleto'));
    expect(statesOf(await call('cancel', payment, {}))).toBe(
      'CANCELED/CANCELED, PURCHASE EXPIRED CANCELED_BY_MERCHANT, CANCEL SUCCEEDED SUCCEEDED',
    );
    expect(at.status).toBe('cancelled');
  });

  it('a payment whose creation was lost twice is PENDING until the search finds its code', async () => {
    const fake = fakes.BR;
    fake.lagSearch(true);
    for (let i = 0; i < 2; i++) fake.lose(/^POST .v1.payments$/, 'after');
    const payment = pay(requestFor('pix'));
    await expect.poll(() => fake.payments.size).toBe(1);
    fake.lagSearch(false);
    await expect.poll(async () => statesOf(await read(await payment)), { timeout: 10_000 }).toBe(OPEN);
    expect(detailOf(await read(await payment)).payment_instruction).toMatch(/^000201/);
    expect(fake.payments.size).toBe(1);
  });

  it('one refusal names what the first account that offers the method lacks', async () => {
    const { customer_payer: _, ...bare } = request('boleto');
    expect(await clients.create('rest', bare, headersOne())).toMatchObject({
      reason: 'OPERATION_NOT_SUPPORTED',
      fields: expect.arrayContaining([
        expect.objectContaining({ field: 'customer_payer.email', code: 'REQUIRED' }),
        expect.objectContaining({ field: 'customer_payer.billing_address.neighborhood', code: 'REQUIRED' }),
      ]),
    });
  });
});
