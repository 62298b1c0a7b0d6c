import { describe, expect, it } from 'vitest';
import { PROTOCOLS } from './support/api-clients.ts';
import {
  alarmsOf,
  becomes,
  CANCELED,
  call,
  described,
  detailOf,
  EXPIRED,
  eventsOf,
  OPEN,
  onLocalPayments,
  PAID,
  pay,
  press,
  type RecordJson,
  read,
  refund,
  request,
  statesOf,
} from './support/local-payments.ts';
import { clients, server, tables } from './support/on-service.ts';
import { headersOne, type RequestJson, withField } from './support/payment-requests.ts';

/* Payments by local methods and wallets' tokens at the sandbox, whose payers pay on its pages, or as a description says. */

onLocalPayments();

describe.concurrent('the life of a payment', () => {
  it.each(PROTOCOLS)('Pix over %s: created, paid on the page, and refunded in parts', async (protocol) => {
    const payment = await pay(request('pix'), protocol);
    expect([statesOf(payment), payment.checkout.sdk_action_required]).toEqual([OPEN, true]);
    await press(payment, 'pay');
    await becomes(payment, PAID);
    const part = await refund(payment, '100.00', protocol);
    expect(statesOf(part)).toBe(
      'SUCCEEDED/PARTIALLY_REFUNDED, PURCHASE SUCCEEDED SUCCEEDED, REFUND SUCCEEDED SUCCEEDED',
    );
    expect((await refund(payment, '249.90', protocol)).sub_status).toBe('REFUNDED');
    expect(await eventsOf(payment)).toEqual([
      ...['payment.purchase', 'payment.purchase', 'payment.refund', 'payment.refund'],
    ]);
  });

  it.each(['boleto', 'oxxo', 'efecty'])('%s: created, paid, and never refunded', async (name) => {
    const payment = await pay(request(name));
    expect(statesOf(payment)).toBe(OPEN);
    await press(payment, 'pay');
    await becomes(payment, PAID);
    for (const verb of ['refund', 'cancel-or-refund']) {
      expect(await call(verb, payment)).toMatchObject({ code: 'OPERATION_NOT_SUPPORTED' });
    }
    expect(statesOf(await read(payment))).toBe(PAID);
  });

  it('PSE: the payer pays on the page of the bank, or the bank declines', async () => {
    const [paid, declined, atDeclining] = [
      await pay(request('pse')),
      await pay(request('pse')),
      await pay(withField(request('pse'), 'payment_method.detail.bank_transfer.bank_id', '1903')),
    ];
    expect(detailOf(paid).redirect_url).toContain('/sandbox/codes/');
    await press(paid, 'pay');
    await press(declined, 'decline');
    await press(atDeclining, 'pay');
    await becomes(paid, PAID);
    for (const payment of [declined, atDeclining]) {
      await becomes(payment, 'DECLINED/DECLINED, PURCHASE DECLINED DECLINED_BY_BANK');
    }
    expect((await call('refund', paid, {})).sub_status).toBe('REFUNDED');
  });

  it.each(PROTOCOLS)(
    'Apple Pay over %s: approved with the card behind it, and refunded',
    async (protocol) => {
      const payment = await pay(request('apple-pay'), protocol);
      expect(statesOf(payment)).toBe(PAID);
      expect(detailOf(payment)).toMatchObject({
        authorization_code: expect.stringMatching(/^[0-9A-Z]{6}$/),
        card_data: { brand: 'VISA', lfd: '1111', fingerprint: '' },
      });
      expect((await refund(payment, '89.00', protocol)).sub_status).toBe('REFUNDED');
    },
  );
});

describe.concurrent('an open payment', () => {
  it.each(['pix', 'boleto', 'spei'])('%s is canceled while it is open', async (name) => {
    const payment = await pay(request(name));
    expect(statesOf(await call('cancel', payment))).toBe(CANCELED);
    await press(payment, 'pay');
    expect(statesOf(await read(payment))).toBe(CANCELED);
  });

  it.each(['oxxo', 'efecty', 'pse'])('%s cannot be canceled', async (name) => {
    const payment = await pay(request(name));
    expect(await call('cancel', payment)).toMatchObject({ code: 'OPERATION_NOT_SUPPORTED' });
    await press(payment, 'pay');
    await becomes(payment, PAID);
  });

  it('an open payment expires when the provider says so', async () => {
    const [after, pressed] = [await pay(described('pix', 'expire_after:1000')), await pay(request('oxxo'))];
    await press(pressed, 'expire');
    for (const payment of [after, pressed]) await becomes(payment, EXPIRED);
    expect(await eventsOf(after)).toEqual(['payment.purchase', 'payment.expired']);
    expect(alarmsOf(after)).toEqual([]);
  });

  it('an open payment has the end that was asked for, within the range of its method', async () => {
    const soon = new Date(Date.now() + 90 * 60_000).toISOString();
    const payment = await pay(withField(request('boleto'), 'payment_method.detail.ticket.expires_at', soon));
    expect(Date.parse(detailOf(payment).expires_at)).toBe(Date.parse(soon));
    const late = new Date(Date.now() + 100 * 86_400_000).toISOString();
    const refused = await clients.create(
      'rest',
      withField(request('pix'), 'payment_method.detail', { bank_transfer: { expires_at: late } }),
      headersOne(),
    );
    expect(refused).toMatchObject({ status: 400, reason: 'INVALID_PARAMETERS' });
    expect(refused.raw).toContain('from 1 minute to 30 days from now');
  });
});

describe('trouble', () => {
  it.each(['reset_after', 'error_after', 'html', 'truncated'])(
    'a code whose answer is lost by %s is asked for once more, and is the same code',
    async (order) => {
      const payment = await pay(described('pix', order));
      expect(statesOf(payment)).toBe(OPEN);
      const codes = await tables.query('SELECT id FROM sandbox.ledger WHERE idempotency_key = $1', [
        payment.transactions.id,
      ]);
      expect(codes).toEqual([{ id: payment.transactions.provider_data.transaction_id }]);
    },
  );

  it.each(['reset_before', 'error_before'])(
    'a creation that does not arrive, nor its repeat (%s), is unknown, and its payer gets our own page',
    async (order) => {
      const payment = await pay(described('boleto', order));
      expect(statesOf(payment)).toMatch(/^PENDING\/PENDING_PROVIDER_CONFIRMATION/);
      expect(detailOf(payment).redirect_url).toBe(`${server.url}/v1/payments/${payment.id}/pay`);
    },
  );

  it('a refused creation fails over to the second acquirer', async () => {
    const payment = await pay(described('pix', 'refuse_before'));
    expect(payment.transactions_history.map(({ provider_id }: RecordJson) => provider_id)).toEqual([
      ...['SANDBOX_ONE', 'SANDBOX_TWO'],
    ]);
  });

  it('an answer about other money is unknown until the look-up finds the code', {
    timeout: 30_000,
  }, async () => {
    const payment = await pay(described('pix', 'wrong_amount'));
    expect(payment.status).toBe('PENDING');
    expect(detailOf(payment).redirect_url).toBe(`${server.url}/v1/payments/${payment.id}/pay`);
    const found = await becomes(payment, OPEN, 25_000);
    expect(detailOf(found).payment_instruction).toMatch(/^000201/);
    expect(await eventsOf(payment)).toEqual(['payment.purchase', 'payment.purchase']);
  });
});

describe.concurrent('tokens of wallets', () => {
  const withToken = (text: string, over: object = {}): RequestJson =>
    withField(request('apple-pay'), 'payment_method.detail.wallet', {
      payment_token: JSON.stringify({ data: `${text} canary-c4n4ry-c4n4ry-c4n4ry` }),
      ...over,
    });

  it('a declined token is a decline, and one of another system is refused as invalid', async () => {
    expect(statesOf(await pay(withToken('sandbox-declined')))).toBe(
      'DECLINED/DECLINED, PURCHASE DECLINED DO_NOT_HONOR',
    );
    expect(statesOf(await pay(withToken('other')))).toMatch(/^ERROR\/ERROR, .* REQUEST_REFUSED/);
  });

  it('a token leads to a challenge as a card does', async () => {
    const payment = await pay(withToken('sandbox-challenge'));
    expect([statesOf(payment), payment.checkout.sdk_action_required]).toEqual([
      'PENDING/WAITING_ADDITIONAL_STEP, PURCHASE PENDING CHALLENGE_REQUIRED',
      true,
    ]);
    await press(payment, 'pay');
    const paid = await becomes(payment, PAID);
    expect(detailOf(paid)).toMatchObject({ redirect_url: '', card_data: { brand: 'VISA' } });
  });

  it('a charge that is refused before it is made goes to the second acquirer, with the token', async () => {
    const payment = await pay(withField(withToken('sandbox'), 'description', 'sandbox:refuse_before'));
    // The description obliges both acquirers, and both got the token: neither refused it as invalid.
    expect(payment.transactions_history.map(({ response_code }: RecordJson) => response_code)).toEqual([
      ...['PROVIDER_UNAVAILABLE', 'PROVIDER_UNAVAILABLE'],
    ]);
  });

  it('another token under the same key is another request', async () => {
    const headers = headersOne();
    expect((await clients.create('rest', withToken('sandbox'), headers)).status).toBe(201);
    expect((await clients.create('rest', withToken('sandbox other'), headers)).reason).toBe(
      'IDEMPOTENCY_KEY_REUSED',
    );
  });

  it('an authorization is captured', async () => {
    const payment = await pay(withToken('sandbox', { capture: false }));
    const captured = await call('capture', payment, { amount: { currency: 'USD', value: '89.00' } });
    expect(captured.transactions).toMatchObject({ type: 'CAPTURE', status: 'SUCCEEDED' });
  });

  it('a charge whose answer is lost is looked up, without the token', { timeout: 30_000 }, async () => {
    const payment = await pay(withField(withToken('sandbox'), 'description', 'sandbox:reset_after'));
    expect(payment.status).toBe('PENDING');
    const found = await becomes(payment, PAID, 25_000);
    expect(detailOf(found)).toMatchObject({ card_data: { brand: 'VISA', lfd: '1111' } });
  });

  it('a token is in no log, record or table', async () => {
    await pay(withToken('sandbox'));
    expect(server.logLines.join('\n')).not.toContain('c4n4ry');
    const names = await tables.query(
      `SELECT format('%I.%I', table_schema, table_name) AS name FROM information_schema.tables
       WHERE table_schema IN ('public', 'sandbox') AND table_type = 'BASE TABLE'`,
    );
    for (const { name } of names) {
      const found = await tables.query(`SELECT t::text FROM ${name} t WHERE t::text LIKE '%c4n4ry%'`);
      expect([name, found]).toEqual([name, []]);
      const hex = Buffer.from('c4n4ry').toString('hex');
      expect(await tables.query(`SELECT 1 FROM ${name} t WHERE t::text LIKE '%${hex}%'`)).toEqual([]);
    }
  });
});
