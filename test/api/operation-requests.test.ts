import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Call, ONE, restCalls } from '../customers/calls.ts';
import { onService, server } from '../support/on-service.ts';
import { cardPayment, withField } from '../support/payment-requests.ts';

onService();
let call: Call;
beforeAll(() => {
  call = restCalls(server.url);
});

const keyed = (key: string = randomUUID()) => ({ ...ONE, 'x-idempotency-key': key });
const pay = async (capture: boolean): Promise<string> => {
  const request = withField(cardPayment(), 'payment_method.detail.card.capture', capture);
  return (await call('POST', '/v1/payments', request, keyed())).json.id;
};
const operate = (id: string, path: string, body: object = {}, key?: string) =>
  call('POST', `/v1/payments/${id}/${path}`, body, keyed(key));
const usd = (value: number) => ({ amount: { currency: 'USD', value } });

describe('an operation that names the transaction shown first in the record', () => {
  it('a second refund by the first refund’s id refunds the same purchase, and can be repeated', async () => {
    const id = await pay(true);
    const first = (await operate(id, 'refund', usd(4))).json.transactions;
    const key = randomUUID();
    const path = `transactions/${first.id}/refund`;
    const second = await operate(id, path, usd(3), key);
    expect([second.status, second.json.amount?.refunded]).toEqual([200, 7]);
    expect(second.json.transactions.parent_transaction_id).toBe(first.parent_transaction_id);
    const again = await operate(id, path, usd(3), key);
    expect([again.text, again.headers.get('idempotent-replayed')]).toEqual([second.text, 'true']);
    expect((await operate(id, `transactions/${randomUUID()}/refund`, usd(3), key)).status).toBe(422);
  });

  it('a refund by a refund’s id acts on the capture that the first refund acted on', async () => {
    const id = await pay(false);
    const capture = (await operate(id, 'capture', usd(2))).json.transactions;
    await operate(id, `transactions/${capture.id}/capture`, usd(3));
    const refund = (await operate(id, `transactions/${capture.id}/refund`, usd(1.5))).json.transactions;
    const second = (await operate(id, `transactions/${refund.id}/refund`)).json.transactions;
    expect([second.parent_transaction_id, second.amount]).toEqual([capture.id, 0.5]);
  });

  it('a capture and a cancel by a capture’s id act on the authorization', async () => {
    const id = await pay(false);
    const first = (await operate(id, 'capture', usd(2))).json.transactions;
    const second = await operate(id, `transactions/${first.id}/capture`, usd(1));
    expect(second.json.transactions.parent_transaction_id).toBe(first.parent_transaction_id);
    const cancel = await operate(id, `transactions/${second.json.transactions.id}/cancel`);
    expect(cancel.json.transactions).toMatchObject({
      ...{ type: 'CANCEL', status: 'SUCCEEDED', parent_transaction_id: first.parent_transaction_id },
    });
  });
});

describe('an operation’s field that it would have to ignore', () => {
  it.each([
    ['refund', 'payment_method.detail.bank_transfer', { account: '1' }],
    ['refund', 'payment_method.detail.ticket', { account: '1' }],
    ['refund', 'payment_method.vaulted_token', 'token'],
    ['refund', 'simplified_mode', true],
    ['refund', 'customer_payer', { id: 'other' }],
    ['refund', 'response_additional_data', { receipt: true }],
    ['refund', 'additional_data', { order: { fee_amount: 1 } }],
    ['cancel-or-refund', 'split', [{ amount: 1 }]],
    ['cancel-or-refund', 'payment_method.detail.bank_transfer', { account: '1' }],
    ['cancel', 'response_additional_data', { receipt: true }],
    ['capture', 'additional_data', { order: { fee_amount: 1 } }],
    ['capture', 'customer_payer', { id: 'other' }],
  ])(
    'a %s is refused if it sets %s, and accepted if the field sets nothing',
    async (operation, field, value) => {
      const id = await pay(operation.endsWith('refund'));
      const refused = await operate(id, operation, withField({}, field, value));
      expect([refused.json.code, refused.json.errors?.[0]?.field]).toEqual(['NOT_SUPPORTED', field]);
      const nothing = typeof value === 'object' ? {} : typeof value === 'string' ? '' : false;
      expect((await operate(id, operation, withField({}, field, nothing))).status).toBe(200);
    },
  );

  it.each([['Amount'], ['AMOUNT']])(
    'a refund of a part is refused if its amount is spelled %s, which would refund everything',
    async (name) => {
      const refused = await operate(await pay(true), 'refund', { [name]: usd(1).amount });
      expect(refused.json.errors?.[0]).toMatchObject({ field: name, message: 'must be spelled amount' });
    },
  );
});

describe('a payment’s field in a place or spelling where it would be ignored', () => {
  it.each([
    ['payment_method.detail.card.card_data.capture', false, 'NOT_SUPPORTED'],
    ['payment_method.detail.card.card_data.installments', 6, 'NOT_SUPPORTED'],
    ['payment_method.detail.card.card_data.verify', true, 'NOT_SUPPORTED'],
    ['payment_method.detail.card.card_data.save', true, 'NOT_SUPPORTED'],
    ['payment_method.detail.card.card_data.stored_credentials', { usage: 'USED' }, 'NOT_SUPPORTED'],
    ['payment_method.installments', 6, 'NOT_SUPPORTED'],
    ['payment_method.detail.card.Capture', false, 'INVALID_PARAMETERS'],
    ['payment_method.detail.card.softDescriptor', 'SHOP', 'INVALID_PARAMETERS'],
    ['payment_method.vaultOnSuccess', true, 'INVALID_PARAMETERS'],
    ['Payment_Method', {}, 'INVALID_PARAMETERS'],
  ])('a payment with %s is refused, and the error names it', async (field, value, code) => {
    const refused = await call('POST', '/v1/payments', withField(cardPayment(), field, value), keyed());
    expect([refused.json.code, refused.json.errors?.[0]?.field]).toEqual([code, field]);
  });

  it.each([
    ['payment_method.detail.card.card_data.capture', true],
    ['payment_method.detail.card.card_data.save', false],
    ['payment_method.installments', 1],
    ['payment_method.detail.card.Capture', null],
  ])('a payment with %s that only states the default is accepted', async (field, value) => {
    const paid = await call('POST', '/v1/payments', withField(cardPayment(), field, value), keyed());
    expect(paid.status).toBe(201);
  });
});
