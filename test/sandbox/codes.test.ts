import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, ask, type ProviderUnderTest, read, startProvider } from './provider-under-test.ts';

let provider: ProviderUnderTest;
beforeAll(async () => {
  provider = await startProvider();
});
afterAll(() => provider.close());

const PIX = { method: 'PIX', amount: 5_200, currency: 'BRL' };
const BOLETO = { method: 'BOLETO', amount: 12_345, currency: 'BRL' };
const OXXO = { method: 'OXXO', amount: 30_000, currency: 'MXN' };
const SPEI = { method: 'SPEI', amount: 1_001, currency: 'MXN' };
const PSE = { method: 'PSE', amount: 5_000_000, currency: 'COP', bank: '1901' };
const EFECTY = { method: 'EFECTY', amount: 5_000_000, currency: 'COP' };

type Code = Answer & { readonly instructions: Readonly<Record<string, string>> };

async function create(body: object, key: string = randomUUID()): Promise<Code> {
  const { status, answer } = await ask(provider.origin, '/v1/codes', body, key);
  expect(status).toBe(201);
  expect(answer).toMatchObject({ object: 'code', status: 'created', amount_received: 0 });
  return answer as Code;
}

const now = (code: Answer) => read(provider.origin, `/v1/by-id/${code.id}`);
const close = async ({ idempotency_key: key }: Answer) =>
  (await ask(provider.origin, `/v1/by-idempotency-key/${key}/close`, {})).answer;

/** Presses a button on the code's page. */
async function press(code: Answer, action: string): Promise<Answer> {
  const page = await fetch(`${provider.origin}/codes/${code.id}/${action}`, {
    method: 'POST',
    redirect: 'manual',
  });
  expect(page.status).toBe(303);
  return now(code);
}

function refund(code: Answer, amount = code.amount) {
  const { currency } = code;
  return ask(provider.origin, '/v1/refunds', { payment: code.id, amount, currency });
}

describe('the codes look real', () => {
  it('a Pix code is an EMV code with the amount and a checksum', async () => {
    const { text = '' } = (await create(PIX)).instructions;
    const elements = new Map<string, string>();
    for (let at = 0; at < text.length; ) {
      const length = Number(text.slice(at + 2, at + 4));
      elements.set(text.slice(at, at + 2), text.slice(at + 4, at + 4 + length));
      at += 4 + length;
    }
    expect(Object.fromEntries(elements)).toMatchObject({
      '00': '01',
      '53': '986',
      '54': '52.00',
      '58': 'BR',
    });
    expect(elements.get('26')).toMatch(/^0014br\.gov\.bcb\.pix25\d\dpix\.example\//);
    expect(elements.get('63')).toBe(checksum(text.slice(0, -4)));
  });

  it('the published check value of the checksum is ours', () => {
    expect(checksum('123456789')).toBe('29B1');
  });

  it('the fields of a boleto have check digits, and its line contains its barcode', async () => {
    const expires_at = '2026-12-24T12:00:00.000Z';
    const { number = '', barcode = '' } = (await create({ ...BOLETO, expires_at })).instructions;
    expect([number, barcode]).toEqual([expect.stringMatching(/^\d{47}$/), expect.stringMatching(/^\d{44}$/)]);
    for (const field of [number.slice(0, 10), number.slice(10, 21), number.slice(21, 32)])
      expect(luhn(field)).toBe(0);
    const free = number.slice(4, 9) + number.slice(10, 20) + number.slice(21, 31);
    expect(barcode).toBe(number.slice(0, 4) + number.slice(32) + free);
    expect(barcode.slice(9, 19)).toBe('0000012345');
    // 1000 is 22 February 2025.
    expect(barcode.slice(5, 9)).toBe('1670');
    const weighted = [...(barcode.slice(0, 4) + barcode.slice(5))].reverse();
    const sum = weighted.reduce((total, digit, i) => total + Number(digit) * (2 + (i % 8)), 0);
    const check = 11 - (sum % 11);
    expect(barcode[4]).toBe(String(check > 9 ? 1 : check));
  });

  it('a CLABE has 18 digits, the last of which is a check digit', async () => {
    const { account = '', reference } = (await create(SPEI)).instructions;
    expect([account, reference]).toEqual([
      expect.stringMatching(/^\d{18}$/),
      expect.stringMatching(/^\d{7}$/),
    ]);
    const sum = [...account.slice(0, 17)].reduce(
      (all, one, i) => all + ((Number(one) * ([3, 7, 1][i % 3] ?? 0)) % 10),
      0,
    );
    expect(Number(account[17])).toBe((10 - (sum % 10)) % 10);
  });

  it('the references of OXXO and EFECTY have a check digit', async () => {
    const { number: oxxo = '', barcode } = (await create(OXXO)).instructions;
    const { number: efecty = '' } = (await create(EFECTY)).instructions;
    expect([oxxo.length, barcode, efecty.length]).toEqual([14, oxxo, 10]);
    expect([luhn(oxxo), luhn(efecty)]).toEqual([0, 0]);
  });
});

describe('a code', () => {
  it('a repeat under the same key gets the same code, and another method under that key is refused', async () => {
    const key = randomUUID();
    const first = await create(PIX, key);
    expect(await create(PIX, key)).toEqual(first);
    expect((await ask(provider.origin, '/v1/codes', BOLETO, key)).status).toBe(409);
    expect((await ask(provider.origin, '/v1/codes', { ...BOLETO, amount: PIX.amount }, key)).status).toBe(
      409,
    );
  });

  it.each([
    [{ ...PIX, method: 'CHEQUE' }, 'method'],
    [{ ...PIX, currency: 'USD' }, 'currency'],
    [{ ...BOLETO, amount: 10_000_000_000 }, 'amount'],
    [{ ...PSE, bank: undefined }, 'bank'],
    [{ ...PSE, bank: '1' }, 'bank'],
    [{ ...PIX, description: 'sandbox:underpaid' }, 'description'],
  ])('%o is refused because of its %s', async (body, param) => {
    const { answer } = await ask(provider.origin, '/v1/codes', body);
    expect(answer.error).toMatchObject({ param });
  });

  it('a charge has no payer who pays late', async () => {
    const order = { wallet: 'WALLET_B', amount: 1, currency: 'USD', description: 'sandbox:paid_late:1' };
    expect((await ask(provider.origin, '/v1/wallet-orders', order)).status).toBe(400);
  });

  it.each([PIX, BOLETO, OXXO, SPEI, PSE, EFECTY])('a tester pays $method on its page', async (body) => {
    const code = await create(body);
    const url = String(code.page_url ?? code.bank_url);
    expect(url).toBe(`http://shop.example/codes/${code.id}`);
    const page = await fetch(`${provider.origin}/codes/${code.id}`);
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('Let it expire')]);
    expect(await press(code, 'pay')).toMatchObject({
      status: 'paid',
      amount_received: body.amount,
      captured: true,
    });
  });

  it.each([
    [PIX, true],
    [BOLETO, true],
    [SPEI, true],
    [OXXO, false],
    [PSE, false],
    [EFECTY, false],
  ])('%o can be closed while it is open: %s', async (body, isClosable) => {
    const code = await create(body);
    expect((await close(code)).status).toBe(isClosable ? 'canceled' : 'created');
    const canceled = await ask(provider.origin, '/v1/cancellations', { payment: code.id });
    expect(canceled.answer.failure_code).toBe('not_cancelable');
    expect((await press(code, 'pay')).status).toBe(isClosable ? 'canceled' : 'paid');
  });

  it('a cancellation closes an open code, too', async () => {
    const code = await create(PIX);
    expect((await ask(provider.origin, '/v1/cancellations', { payment: code.id })).status).toBe(201);
    expect(await now(code)).toMatchObject({ status: 'canceled', amount_canceled: PIX.amount });
  });

  it.each([
    [PIX, [201, 201, 402]],
    [SPEI, [201, 201, 402]],
    [PSE, [201, 201, 402]],
    [BOLETO, [402, 402, 402]],
    [OXXO, [402, 402, 402]],
    [EFECTY, [402, 402, 402]],
  ])('the refunds of %o get %o', async (body, statuses) => {
    const code = await create(body);
    expect((await refund(code)).answer.failure_code).toBe('not_refundable');
    await press(code, 'pay');
    const made = [(await refund(code, 1)).status, (await refund(code, body.amount - 1)).status];
    expect([...made, (await refund(code, 1)).status]).toEqual(statuses);
  });

  it('an expired code cannot be paid', async () => {
    const code = await create({ ...PIX, description: 'sandbox:expire_after:50' });
    expect(Date.parse(String(code.expires_at)) - Date.parse(String(code.created_at))).toBeLessThan(60);
    await expect.poll(async () => (await now(code)).status).toBe('expired');
    expect((await press(code, 'pay')).status).toBe('expired');
    const other = await create(BOLETO);
    expect((await press(other, 'expire')).status).toBe('expired');
    expect((await press(other, 'pay')).status).toBe('expired');
    expect((await close(other)).status).toBe('expired');
  });
});

describe('a transfer of any amount', () => {
  it('a transfer of too little waits for the rest, and cannot be closed', async () => {
    const code = await create(SPEI);
    expect(await press(code, 'pay-half')).toMatchObject({ status: 'created', amount_received: 500 });
    expect((await close(code)).status).toBe('created');
    expect(await press(code, 'pay')).toMatchObject({ status: 'paid', amount_received: 1_001 });
  });

  it('a transfer of too little that expires shows what has arrived', async () => {
    const code = await create(SPEI);
    await press(code, 'pay-half');
    expect(await press(code, 'expire')).toMatchObject({
      status: 'expired',
      amount_received: 500,
      captured: false,
    });
  });

  it('a transfer of too much is paid, and only the amount can be refunded', async () => {
    const code = await create(SPEI);
    expect(await press(code, 'pay-more')).toMatchObject({
      status: 'paid',
      amount_received: 1_501,
      amount_captured: 1_001,
    });
    expect((await refund(code, 1_002)).answer.failure_code).toBe('amount_too_large');
  });

  it('nobody pays another amount with Pix', async () => {
    expect(await press(await create(PIX), 'pay-half')).toMatchObject({
      status: 'created',
      amount_received: 0,
    });
  });
});

describe('banks', () => {
  it('PSE has three banks, and other methods have none', async () => {
    expect(await read(provider.origin, '/v1/banks?method=PSE')).toMatchObject({
      banks: [{ id: '1901' }, { id: '1902' }, { id: '1903' }],
    });
    expect(await read(provider.origin, '/v1/banks?method=PIX')).toMatchObject({ banks: [] });
  });

  it('one bank declines, unless the description requests otherwise', async () => {
    const declining = { ...PSE, bank: '1903' };
    const declined = { status: 'declined', response_code: '21' };
    expect(await press(await create(declining), 'pay')).toMatchObject(declined);
    expect(await press(await create(PSE), 'decline')).toMatchObject(declined);
    const paid = await create({ ...declining, description: 'sandbox:done_after:20' });
    await expect.poll(async () => (await now(paid)).status).toBe('paid');
  });
});

describe('descriptions', () => {
  it.each([
    [{ ...PIX, description: 'sandbox:done_after:20' }, 'paid'],
    [{ ...PIX, description: 'sandbox:fail_after:20' }, 'declined'],
    [{ ...PIX, description: 'sandbox:done_after:500,expire_after:20' }, 'expired'],
    [{ ...OXXO, description: 'sandbox:confirm_after:60000' }, 'confirming'],
    [{ ...OXXO, description: 'sandbox:confirm_after:50' }, 'paid'],
  ])('%o becomes %s', async (body, status) => {
    const code = await create(body);
    await expect.poll(async () => (await now(code)).status).toBe(status);
  });

  it('a code is declined at once', async () => {
    const { status, answer } = await ask(provider.origin, '/v1/codes', {
      ...PIX,
      description: 'sandbox:decline:51',
    });
    expect([status, answer.status, answer.response_code]).toEqual([402, 'declined', '51']);
  });

  it('a code that is paid late is paid after it has expired, or after it was closed', {
    timeout: 10_000,
  }, async () => {
    const late = { ...PIX, description: 'sandbox:paid_late:100' };
    const [expiring, closed] = [await create(late), await create(late)];
    expect((await close(closed)).status).toBe('canceled');
    await expect.poll(async () => (await now(expiring)).status).toBe('expired');
    for (const code of [expiring, closed])
      await expect.poll(async () => (await now(code)).status, { timeout: 8_000 }).toBe('paid');
  });

  it('half, or half again as much, arrives after three seconds', { timeout: 10_000 }, async () => {
    const [less, more] = await Promise.all(
      ['underpaid', 'overpaid'].map((name) => create({ ...SPEI, description: `sandbox:${name}` })),
    );
    await expect
      .poll(() => now(less as Code), { timeout: 5_000 })
      .toMatchObject({ status: 'created', amount_received: 500 });
    await expect
      .poll(() => now(more as Code), { timeout: 5_000 })
      .toMatchObject({ status: 'paid', amount_received: 1_501 });
  });
});

/** Digits whose last one is a check digit of modulo 10 have the remainder 0. */
function luhn(digits: string): number {
  const sum = [...digits].reverse().reduce((total, digit, i) => {
    const weighted = Number(digit) * (1 + (i % 2));
    return total + Math.floor(weighted / 10) + (weighted % 10);
  }, 0);
  return sum % 10;
}

/** CRC-16/CCITT-FALSE, computed bit by bit. */
function checksum(text: string): string {
  let crc = 0xffff;
  for (const byte of Buffer.from(text)) {
    for (let bit = 7; bit >= 0; bit--) {
      const isSet = ((crc >> 15) & 1) !== ((byte >> bit) & 1);
      crc = (crc << 1) & 0xffff;
      if (isSet) crc ^= 0x1021;
    }
  }
  return crc.toString(16).toUpperCase().padStart(4, '0');
}
