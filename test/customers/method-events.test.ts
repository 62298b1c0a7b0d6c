import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PaymentMethodService } from '#gen/payments/v1/payment_method_service_pb.js';
import { type Receiver, startReceiver } from '../webhooks/receiver.ts';
import { ONE, rpcClients } from './calls.ts';
import { cardData, sentCard } from './checkout.ts';
import { call, checkout, onOwnServer, pay, server, tables } from './own-server.ts';

const CARD = '4539578763621486';
const OTHER = '5555555555554444';

onOwnServer();
let customer: string;

beforeAll(async () => {
  customer = await checkout.customer();
});

const path = () => `/v1/customers/${customer}/payment-methods`;
const enroll = () => call('POST', path(), { country: 'CO', card_data: cardData(CARD) });

describe('stored methods over RPC', () => {
  it('a stored method can be enrolled, listed, read and unenrolled over every RPC protocol', async () => {
    const { clients, close } = rpcClients(server.url, PaymentMethodService);
    const options = { headers: ONE };
    for (const { client } of clients) {
      const card = { number: CARD, expirationMonth: 12, expirationYear: 30 };
      const made = await client.enrollPaymentMethod({ customerId: customer, cardData: card }, options);
      const { id } = made;
      expect(await client.getPaymentMethod({ customerId: customer, id }, options)).toEqual(made);
      const { paymentMethods } = await client.listPaymentMethods({ customerId: customer }, options);
      expect(paymentMethods).toEqual([made]);
      await client.unenrollPaymentMethod({ customerId: customer, id }, options);
    }
    close();
  });
});

describe('webhooks', () => {
  let shop: Receiver;
  beforeAll(async () => {
    shop = await startReceiver();
  });
  afterAll(() => shop?.close());

  it('webhooks get one event for each enrollment and each unenrollment of a stored method', async () => {
    const events = ['enrollment.enroll', 'enrollment.unenroll'];
    await call('POST', '/v1/webhooks', { url: shop.url, events });
    const enrolled = (await enroll()).json;
    await enroll();
    await pay({ vaulted_token: enrolled.id }, customer);
    const paid = await pay({ ...sentCard(OTHER), vault_on_success: true }, customer);
    await pay({ ...sentCard(OTHER), vault_on_success: true }, customer);
    const kept = paid.json.payment_method.vaulted_token;
    const told = (await call('GET', `${path()}/${kept}`)).json;
    const ended = (await call('POST', `${path()}/${enrolled.id}/unenroll`)).json;
    await call('DELETE', `/v1/customers/${customer}`);
    const messages = await shop.has(4);
    const seen = messages.map(({ json }) => [json.type, json.type_event, json.data.payment_method.id]).sort();
    expect(seen).toEqual(
      [
        ['enrollment', 'enrollment.enroll', enrolled.id],
        ['enrollment', 'enrollment.enroll', kept],
        ['enrollment', 'enrollment.unenroll', enrolled.id],
        ['enrollment', 'enrollment.unenroll', kept],
      ].sort(),
    );
    const of = (event: string, id: string) =>
      messages.find(({ json }) => json.type_event === event && json.data.payment_method.id === id)?.json.data
        .payment_method;
    expect(of('enrollment.enroll', enrolled.id)).toEqual(enrolled);
    expect(of('enrollment.unenroll', enrolled.id)).toEqual(ended);
    expect(of('enrollment.enroll', kept)).toMatchObject({
      ...{ customer_id: customer, name: told.name, status: 'ENROLLED', created_at: told.created_at },
      card_data: told.card_data,
    });
    // The code was sent for the payment, and is not stored.
    expect(told.card_data.security_code_length).toBe(0);
    expect(await tables.query('SELECT count(*)::int AS n FROM event')).toEqual([{ n: 4 }]);
  });
});
