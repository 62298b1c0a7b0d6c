import { beforeAll, expect, it, vi } from 'vitest';
import { SANDBOX_OPERATOR_KEY } from '#src/config.ts';
import { type Merchant, merchantOne, type Operator, pathOf, signIn } from '../support/dashboard.ts';
import { onService, server, tables } from '../support/on-service.ts';
import { cardPayment, type RequestJson, withField } from '../support/payment-requests.ts';

let operator: Operator;
let merchant: Merchant;

onService();
beforeAll(async () => {
  operator = await signIn(server, SANDBOX_OPERATOR_KEY);
  merchant = merchantOne(server);
});

const PLACES: Readonly<Record<string, readonly [country: string, currency: string, value: number]>> = {
  ...{ PIX: ['BR', 'BRL', 52], BOLETO: ['BR', 'BRL', 120], SPEI: ['MX', 'MXN', 300] },
  ...{ OXXO: ['MX', 'MXN', 300], PSE: ['CO', 'COP', 50_000] },
};
const PAYER = {
  ...{ first_name: 'ANA', last_name: 'GOMEZ', email: 'ana@shop.example', ip_address: '192.0.2.7' },
  phone: { country_code: '57', number: '3001234567' },
  document: { document_type: 'CPF', document_number: '11144477735' },
  billing_address: { address_line_1: 'Rua A 1', city: 'Recife', state: 'PE', zip_code: '50000000' },
};

function pay(type: string, fields: RequestJson = {}) {
  const [country, currency, value] = PLACES[type] ?? ['US', 'USD', 30];
  const plain: RequestJson = {
    ...{ ...cardPayment(), country, amount: { currency, value }, customer_payer: PAYER, workflow: undefined },
    payment_method: { type },
  };
  const request = Object.entries(fields).reduce((all, [path, one]) => withField(all, path, one), plain);
  return merchant.call('/v1/payments', request);
}

const pageOf = async (payment: { id: string }): Promise<string> =>
  (await operator.get(pathOf(payment as never))).text();
/** Returns the value of a row of the section about what the payer was shown; undefined if there is none. */
function shown(page: string, name: string): string | undefined {
  const section = page.split('<h2>Shown to the payer</h2>')[1]?.split('</section>')[0] ?? '';
  return section
    .split(`<dt>${name}</dt><dd>`)[1]
    ?.split('</dd>')[0]
    ?.replaceAll(/<[^>]*>/g, '');
}
const toTheSecond = (iso: string) => iso.slice(0, 19).replace('T', ' ');

it('a bank transfer’s page shows its category, the text, the page and until when', async () => {
  const pix = await pay('PIX');
  const { bank_transfer: transfer } = pix.payment_method.payment_method_detail;
  const page = await pageOf(pix);
  expect(page).toContain('PIX <span class="quiet">bank transfer</span>');
  expect(shown(page, 'Text to copy')).toBe(transfer.payment_instruction);
  expect(shown(page, 'QR code')).toBe(transfer.provider_image);
  expect(page).toContain(`href="${transfer.redirect_url}"`);
  expect(shown(page, 'Expires (UTC)')).toBe(toTheSecond(transfer.expires_at));
  expect(shown(page, 'Waits for the payer until (UTC)')).toBeUndefined();
  expect(shown(page, 'Received')).toBeUndefined();
});

it('a voucher’s page shows its digits, bars and document', async () => {
  const boleto = await pay('BOLETO');
  const { ticket } = boleto.payment_method.payment_method_detail;
  const page = await pageOf(boleto);
  expect([shown(page, 'Digits'), shown(page, 'Barcode')]).toEqual([
    ticket.provider_number,
    ticket.provider_barcode,
  ]);
  expect(shown(page, 'Provider’s document')).toBe(ticket.document_url);
});

it('a transfer’s page shows the account, and the money that came instead of the amount', async () => {
  const spei = await pay('SPEI', { description: 'sandbox:underpaid' });
  const { bank_transfer: transfer } = spei.payment_method.payment_method_detail;
  await vi.waitFor(async () => expect(shown(await pageOf(spei), 'Received')).toMatch(/^MXN 150\.00, /), {
    timeout: 20_000,
    interval: 500,
  });
  const page = await pageOf(spei);
  expect([shown(page, 'Account'), shown(page, 'Bank')]).toEqual([transfer.bank_account, transfer.bank_name]);
});

it('a wallet’s page shows where the payer was sent, and a card’s shows nothing of this', async () => {
  const wallet = await merchant.call('/v1/payments', {
    ...{ ...cardPayment(), country: 'CO', amount: { currency: 'COP', value: 1_000 }, workflow: 'REDIRECT' },
    payment_method: { type: 'WALLET_B' },
  });
  const page = await pageOf(wallet);
  expect(shown(page, 'Page')).toBe(wallet.payment_method.payment_method_detail.wallet.redirect_url);
  expect(shown(page, 'Waits for the payer until (UTC)')).toMatch(/^\d{4}-/);
  expect(await pageOf(await merchant.pay())).not.toContain('Shown to the payer');
});

it.each([
  ['PIX', {}],
  ['BOLETO', { 'payment_method.detail.ticket.expires_at': new Date(Date.now() + 9e8).toISOString() }],
  [
    'PSE',
    {
      'payment_method.detail.bank_transfer': { bank_id: '1901', account_type: 'SAVINGS' },
      'customer_payer.document': { document_type: 'CC', document_number: '123456' },
    },
  ],
  ['GOOGLE_PAY', { 'payment_method.detail.wallet.payment_token': '{"signature":"sandbox"}' }],
])('a payment by %s is explained as the catalogue would route it now', async (type, fields) => {
  const page = await pageOf(await pay(type, fields));
  expect(page).not.toContain('would refuse this payment');
  expect(page).toContain('<th scope="row">1. sandbox-one');
  expect(page).not.toContain('skipped: offers no');
});

it('the explanation says when the payer’s data was erased, since targets may need it', async () => {
  const pix = await pay('PIX');
  const note = 'so targets that need it are skipped here';
  expect(await pageOf(pix)).not.toContain(note);
  await tables.query('UPDATE payment SET personal_data_erased_at = now() WHERE id = $1', [pix.id]);
  expect(await pageOf(pix)).toContain(note);
});

it('the catalogue’s page says what connections do with local methods and tokens', async () => {
  const page = await (await operator.get('/catalogue')).text();
  expect(page).toContain('tokens of GOOGLE_PAY, PIX (refunds: several, cancel), BOLETO (cancel), OXXO, SPEI');
});

it('the route of a local method is explained with what its targets lack', async () => {
  const explain = async (payment: RequestJson) => {
    const response = await fetch(`${server.url}/v1/routes/explain`, {
      method: 'POST',
      headers: { 'operator-key': SANDBOX_OPERATOR_KEY, 'content-type': 'application/json' },
      body: JSON.stringify({ payment }),
    });
    return (await response.json()) as {
      facts: object;
      targets: object[];
      passed_over: { connection: { id: string }; lacks: string[] }[];
    };
  };
  const { account_id, merchant_order_id } = cardPayment();
  const oxxo = {
    ...{ account_id, merchant_order_id, country: 'MX', amount: { currency: 'MXN', value: 300 } },
    payment_method: { type: 'OXXO', detail: { ticket: { expires_at: '2020-01-01T00:00:00Z' } } },
    customer_payer: { first_name: 'ANA', last_name: 'GOMEZ' },
  };
  const way = await explain(oxxo);
  expect(way.facts).toMatchObject({ type: 'OXXO', category: 'TICKET', workflow: 'REDIRECT' });
  expect(way.targets).toEqual([]);
  expect(way.passed_over[0]).toMatchObject({
    connection: { id: 'sandbox-one' },
    lacks: [
      'OXXO payments with another payment_method.detail.ticket.expires_at than from 1 hour to 7 days from now',
      'OXXO payments without customer_payer.email',
    ],
  });
});
