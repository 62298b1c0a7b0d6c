import { randomUUID } from 'node:crypto';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { type Call, ONE, PUBLIC_ONE, type Response } from './calls.ts';

/** The terms of a checkout session in the sandbox. */
export const TERMS = {
  account_id: ACCOUNT_ONE,
  merchant_order_id: 'order-77',
  payment_description: 'Two tickets',
  country: 'US',
  amount: { currency: 'USD', value: 55.75 },
  callback_url: 'https://shop.example/back',
};

/** A card as a form sends it. */
export const cardData = (number = '4111111111111111') => ({
  number,
  expiration_month: 12,
  expiration_year: 30,
  security_code: '123',
  holder_name: 'ANA GOMEZ',
});

/** Makes the calls that a merchant's server and a payer's browser make for a checkout session. */
export function checkoutCalls(call: Call) {
  return {
    async openSession(terms: object = {}): Promise<string> {
      const made = await call('POST', '/v1/checkout/sessions', { ...TERMS, ...terms });
      if (made.status !== 201) throw new Error(made.text);
      return made.json.checkout_session;
    },
    async customer(): Promise<string> {
      return (await call('POST', '/v1/customers', { merchant_customer_id: randomUUID() })).json.id;
    },
    async token(session: string, number?: string): Promise<string> {
      const path = `/v1/checkout/sessions/${session}/token`;
      const made = await call('POST', path, { card_data: cardData(number) }, PUBLIC_ONE);
      if (made.status !== 201) throw new Error(made.text);
      return made.json.token;
    },
    /** Pays as a page does, with only the public key. */
    payAsBrowser(
      session: string,
      method: object,
      key: string = randomUUID(),
      change: object = {},
    ): Promise<Response> {
      const path = `/v1/checkout/sessions/${session}/payments`;
      const headers = { ...PUBLIC_ONE, 'x-idempotency-key': key };
      return call('POST', path, { payment_method: method, ...change }, headers);
    },
    /** Pays as a merchant's server does. */
    pay(session: string, method: object, change: object = {}, key: string = randomUUID()): Promise<Response> {
      const { account_id, merchant_order_id, country, amount } = TERMS;
      const body = {
        ...{ account_id, merchant_order_id, country, amount },
        checkout: { session },
        payment_method: method,
        ...change,
      };
      return call('POST', '/v1/payments', body, { ...ONE, 'x-idempotency-key': key });
    },
  };
}

/** Returns a payment method with card data. */
export const sentCard = (number?: string) => ({
  type: 'CARD',
  detail: { card: { card_data: cardData(number) } },
});
