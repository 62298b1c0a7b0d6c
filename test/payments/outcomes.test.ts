import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { MAGIC_CARDS } from '#sandbox/magic-cards.ts';
import { PROTOCOLS } from '../support/api-clients.ts';
import { sandboxCatalogue } from '../support/catalogues.ts';
import { clients, onService, server, tables } from '../support/on-service.ts';
import {
  cardPayment,
  headersOne,
  type RequestJson,
  walletPayment,
  withField,
} from '../support/payment-requests.ts';

/** No response is late, however busy the machine is. A missing response is awaited for TIMEOUT_MS. */
const PATIENT = sandboxCatalogue(20_000);
const TIMEOUT_MS = 2_000;

onService({
  config: {
    // Outcomes that are not learned at once stay unknown in these tests: their first look-up is
    // after a minute.
    checkSchedule: { leaseMarginMs: 10_000, firstCheckMs: 60_000, closingMarginMs: 10_000 },
    // The provider's notifications, each of which would prompt a look-up, go nowhere.
    publicUrl: 'http://127.0.0.1:1',
  },
  catalogue: PATIENT,
});

// biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary fields of the record.
type RecordJson = any;
async function pay(request: RequestJson): Promise<RecordJson> {
  const reply = await clients.create('rest', request, headersOne());
  expect([reply.status, reply.fields]).toEqual([201, []]);
  return JSON.parse(reply.record);
}

const statesOf = ({ status, sub_status, transactions }: RecordJson) =>
  `${status}/${sub_status} ${transactions.status} ${transactions.response_code}`;

const APPROVED = 'SUCCEEDED/APPROVED SUCCEEDED SUCCEEDED';
const WAITING = 'PENDING/PENDING_PROVIDER_CONFIRMATION PENDING PENDING_PROVIDER_CONFIRMATION';
const NOT_SENT = 'ERROR/ERROR ERROR PROVIDER_UNAVAILABLE';
const declined = (code: string) => `DECLINED/DECLINED DECLINED ${code}`;

/**
 * The outcome of each magic card at acquirer one, with the provider's ISO 8583 code; unsent payments go on to
 * acquirer two.
 */
const BY_CARD: Record<string, [states: string, iso8583: string]> = {
  DO_NOT_HONOR: [declined('DO_NOT_HONOR'), '05'],
  INSUFFICIENT_FUNDS: [declined('INSUFFICIENT_FUNDS'), '51'],
  REPORTED_LOST: [declined('REPORTED_LOST'), '41'],
  REPORTED_STOLEN: [declined('REPORTED_STOLEN'), '43'],
  EXPIRED_CARD: [declined('EXPIRED_CARD'), '54'],
  INVALID_SECURITY_CODE: [declined('INVALID_SECURITY_CODE'), '82'],
  ACQUIRER_CONTINGENCY: [declined('ACQUIRER_CONTINGENCY'), '91'],
  NO_ANSWER: [WAITING, ''],
  RESET_AFTER_CHARGE: [WAITING, ''],
  ERROR_AFTER_CHARGE: [WAITING, ''],
  UNREADABLE_ANSWER: [WAITING, ''],
  CONNECTION_REFUSED: [NOT_SENT, ''],
  DECLINED_AT_ACQUIRER_ONE: [declined('DO_NOT_HONOR'), '05'],
  // The card's delay is longer than the connection waits here.
  APPROVED_AFTER_DELAY: [WAITING, ''],
};

describe('a card payment', () => {
  const cases = Object.entries(BY_CARD).map(([name, [states, iso8583]]) => ({ name, states, iso8583 }));

  it.each(cases)('a card payment with the magic card $name is $states', async ({ name, states, iso8583 }) => {
    const { number = '' } = MAGIC_CARDS.find((card) => card.name === name) ?? {};
    const isSilent = name === 'NO_ANSWER' || name === 'APPROVED_AFTER_DELAY';
    if (isSilent) server.replaceCatalogue(sandboxCatalogue(TIMEOUT_MS));
    const startedMs = performance.now();
    const record = await pay(cardPayment(number));
    if (isSilent) expect(performance.now() - startedMs).toBeLessThan(TIMEOUT_MS + 5_000);
    server.replaceCatalogue(PATIENT);
    expect(statesOf(record)).toBe(states);
    expect(record.transactions.provider_data).toMatchObject({
      id: states === NOT_SENT ? 'SANDBOX_TWO' : 'SANDBOX_ONE',
      iso8583_response_code: iso8583 || null,
      response_code: iso8583,
    });
    expect(record.amount).toMatchObject({ captured: 0, refunded: 0, value: 10 });
    const { authorization_code, retrieval_reference_number } =
      record.payment_method.payment_method_detail.card;
    expect([authorization_code, retrieval_reference_number]).toEqual(['', '']);
    const [stored] = await tables.query('SELECT status FROM payment WHERE id = $1', [record.id]);
    expect(stored?.status).toBe(record.status);
  });

  it('every outcome that the sandbox decides without the payer has a magic card', () => {
    const decided = MAGIC_CARDS.filter(({ behaviour }) => behaviour.kind !== 'challenge');
    expect(decided.map(({ name }) => name).filter((name) => !(name in BY_CARD))).toEqual([]);
  });

  it('a card payment is declined by acquirer one and approved by acquirer two', async () => {
    const record = await pay({ ...cardPayment('4000000000006009'), country: 'BR' });
    expect(statesOf(record)).toBe(APPROVED);
    expect(record.transactions).toMatchObject({
      provider_id: 'SANDBOX_TWO',
      connection_data: { id: 'sandbox-two' },
    });
    expect(record.routing_rules.condition).toMatchObject({ id: 1, name: 'Cards in Brazil' });
  });

  it('a card payment fails over after a soft decline, and is approved with two transactions', async () => {
    const record = await pay({ ...cardPayment('4000000000006009'), country: 'MX' });
    expect(statesOf(record)).toBe(APPROVED);
    expect(record.transactions_history).toMatchObject([
      { provider_id: 'SANDBOX_ONE', status: 'DECLINED', response_code: 'DO_NOT_HONOR' },
      { provider_id: 'SANDBOX_TWO', status: 'SUCCEEDED', response_code: 'SUCCEEDED' },
    ]);
    expect(record.transactions_history[1]).toEqual(record.transactions);
    const rows = await tables.query(
      'SELECT id, status FROM transaction WHERE payment_id = $1 ORDER BY created_at',
      [record.id],
    );
    expect(rows).toEqual(record.transactions_history.map(({ id, status }: RecordJson) => ({ id, status })));
  });

  it.each(['41', '04', '07', '12', '15', '46', 'R0', 'R1', 'R3', '94', '1A'])(
    'a card payment is tried at no other acquirer after the hard decline %s',
    async (code) => {
      const order = { ...cardPayment(), country: 'MX', description: `sandbox:decline:${code}` };
      const record = await pay(order);
      expect(statesOf(record)).toMatch(/^DECLINED/);
      expect(record.transactions_history).toHaveLength(1);
      expect(record.transactions.provider_data).not.toHaveProperty('merchant_advice_code');
    },
  );

  it("a card payment is approved whatever the card's expiry date, unless the provider says otherwise", async () => {
    const path = 'payment_method.detail.card.card_data.expiration_year';
    expect(statesOf(await pay(withField(cardPayment(), path, 1)))).toBe(APPROVED);
  });

  it.each([true, false, undefined])(
    'a card payment that requests capture %j shows capture as true, and stores the requested value',
    async (capture) => {
      const record = await pay(withField(cardPayment(), 'payment_method.detail.card.capture', capture));
      const { transactions, payment_method } = record;
      expect(payment_method.payment_method_detail.card.capture).toBe(true);
      expect(transactions.provider_data.raw_response.captured).toBe(capture ?? true);
      const [stored] = await tables.query('SELECT capture FROM transaction WHERE id = $1', [transactions.id]);
      expect(stored?.capture).toBe(capture ?? true);
    },
  );

  it('a card payment keeps its merchant_reference, or gets a generated one', async () => {
    const sent = await pay({ ...cardPayment(), merchant_reference: 'mine' });
    expect(sent.transactions.merchant_reference).toBe('mine');
    const made = await pay(cardPayment());
    expect(made.transactions.merchant_reference).toMatch(/^reference-[0-9a-f-]{36}$/);
  });
});

describe('an amount', () => {
  it.each([
    ['JPY', 1200, '1200.0', 1200],
    ['JPY', '1200.00', '1200.0', 1200],
    ['KWD', '1.5', '1.500', 1500],
    ['USD', 3000, '3000.00', 300000],
    ['USD', '0.1', '0.10', 10],
    ['CLF', '1.0001', '1.0001', 10001],
    ['USD', '999999999999.99', '999999999999.99', 99999999999999],
  ])(
    'an amount of %s %j is returned as %s and sent as %i minor units',
    async (currency, value, written, minorUnits) => {
      const request = { ...cardPayment(), amount: { currency, value } };
      for (const protocol of PROTOCOLS) {
        const reply = await clients.create(protocol, request, headersOne());
        expect(reply.record).toContain(`"value":${written}}`);
        const zero = written.replace(/\d/g, '0').replace(/^0+/, '0');
        expect(reply.record).toContain(`"captured":${zero},`);
        const { transactions } = JSON.parse(reply.record);
        const [charge] = await tables.query('SELECT amount FROM sandbox.ledger WHERE idempotency_key = $1', [
          transactions.id,
        ]);
        expect(charge?.amount).toBe(String(minorUnits));
      }
    },
  );
});

describe('vault_on_success', () => {
  const vaulting = (number?: string) =>
    withField(cardPayment(number), 'payment_method.vault_on_success', true);
  const tokens = () => tables.query('SELECT id, active FROM vaulted_token ORDER BY id');

  it('vault_on_success returns a token with which the next payment needs no security code', async () => {
    const record = await pay(vaulting('5555555555554444'));
    const { vaulted_token, vault_on_success } = record.payment_method;
    expect(vault_on_success).toBe(true);
    expect(record.transactions.payment_method.vaulted_token).toBe(vaulted_token);

    for (const protocol of PROTOCOLS) {
      const request = { ...cardPayment(), payment_method: { type: 'CARD', vaulted_token } };
      const next = JSON.parse((await clients.create(protocol, request, headersOne())).record);
      expect(statesOf(next)).toBe(APPROVED);
      expect(next.payment_method.vaulted_token).toBe(vaulted_token);
      const sent = record.payment_method.payment_method_detail.card.card_data;
      expect(next.payment_method.payment_method_detail.card.card_data).toEqual({
        ...sent,
        security_code_length: 0,
      });
      expect(next.transactions.provider_data.raw_response.card_last_four).toBe('4444');
    }
  });

  it.each([
    ['a decline', '4000000000000002'],
    ['an attempt that was not sent', '4000000000005001'],
  ])('vault_on_success stores no card after %s', async (_name, number) => {
    const before = await tokens();
    const record = await pay(vaulting(number));
    expect([record.payment_method.vaulted_token, record.payment_method.vault_on_success]).toEqual(['', true]);
    expect(await tokens()).toEqual(before);
  });

  it('vault_on_success keeps the card unusable while the outcome is unknown', async () => {
    const before = (await tokens()).map(({ id }) => id);
    const record = await pay(vaulting('4000000000003006'));
    expect([statesOf(record), record.payment_method.vaulted_token]).toEqual([WAITING, '']);
    const [waiting, ...more] = (await tokens()).filter(({ id }) => !before.includes(id));
    expect([waiting?.active, more]).toEqual([false, []]);

    const request = { ...cardPayment(), payment_method: { type: 'CARD', vaulted_token: waiting?.id } };
    expect((await clients.create('rest', request, headersOne())).reason).toBe('VAULTED_TOKEN_NOT_FOUND');
  });

  it('without vault_on_success, no card is stored', async () => {
    const before = await tokens();
    expect((await pay(cardPayment())).payment_method.vaulted_token).toBe('');
    expect(await tokens()).toEqual(before);
  });
});

describe('a wallet payment', () => {
  it('a wallet payment redirects the payer to a page of the provider', async () => {
    const record = await pay(walletPayment());
    expect(statesOf(record)).toBe('READY_TO_PAY/CREATED CREATED SUCCEEDED');
    expect(record.checkout.sdk_action_required).toBe(true);
    const { wallet } = record.payment_method.payment_method_detail;
    expect([wallet.capture, record.transactions.category]).toEqual([false, 'WALLET']);
    expect((await fetch(wallet.redirect_url)).status).toBe(200);
  });

  it('a wallet payment uses the requested workflow if there are two, and requires the request to name it', async () => {
    const wallet = { ...walletPayment(), payment_method: { type: 'WALLET_E' } };
    const direct = await pay({ ...wallet, workflow: 'DIRECT' });
    expect([statesOf(direct), direct.checkout.sdk_action_required]).toEqual([WAITING, false]);
    expect(direct.payment_method.payment_method_detail.wallet.redirect_url).toBe('');
    const reply = await clients.create('rest', withField(wallet, 'workflow', undefined), headersOne());
    expect(reply.fields).toMatchObject([{ field: 'workflow', code: 'REQUIRED' }]);
  });

  it.each([
    ['payment_method.type', 'WALLET_NOBODY_OFFERS'],
    ['country', 'DE'],
    ['amount.currency', 'EUR'],
  ])('a wallet payment is refused if the catalogue does not offer it: %s', async (path, value) => {
    for (const protocol of PROTOCOLS) {
      const reply = await clients.create(protocol, withField(walletPayment(), path, value), headersOne());
      expect(reply).toMatchObject({ reason: 'PAYMENT_METHOD_NOT_AVAILABLE', fields: [{ field: path }] });
      expect(reply.raw).not.toContain('WALLET_NOBODY_OFFERS');
    }
  });
});

describe('additional data', () => {
  it('several airline tickets are returned as sent, and the first also as `ticket`', async () => {
    const tickets = ['001', '002', '003'].map((ticket_number) => ({ ticket_number, total_fare_amount: 5 }));
    const record = await pay(withField(cardPayment(), 'additional_data.airline.tickets', tickets));
    const { airline } = record.additional_data;
    expect(airline.ticket.ticket_number).toBe('001');
    expect(airline.tickets.map((ticket: RecordJson) => ticket.ticket_number)).toEqual(['001', '002', '003']);
  });

  it('additional data about the payer overrides the stored customer', async () => {
    const payer = { id: 'c0000000-0000-4000-8000-000000000001', first_name: 'Other', phone: { number: '1' } };
    const { customer_payer } = await pay({ ...cardPayment(), customer_payer: payer });
    expect(customer_payer).toMatchObject({
      first_name: 'Other',
      last_name: 'Restrepo',
      phone: { number: '1', country_code: null },
    });
  });

  it('additional data is stored with its payment, and is found again', async () => {
    const record = await pay({ ...cardPayment(), merchant_order_id: randomUUID() });
    const response = await fetch(`${server.url}/v1/payments/${record.id}`, { headers: headersOne() });
    expect(await response.json()).toEqual(record);
  });
});
