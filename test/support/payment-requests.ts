import { randomUUID } from 'node:crypto';

/** The sandbox's fixtures (src/server/sandbox-fixtures.ts). */
export const ACCOUNT_ONE = '11111111-1111-4111-8111-111111111111';
export const ACCOUNT_TWO = '22222222-2222-4222-8222-222222222222';
export const CUSTOMER = 'c0000000-0000-4000-8000-000000000001';
export const CHECKOUT_SESSION = '5e550000-0000-4000-8000-000000000001';
export const ENROLLED_WALLET = '70ce0000-0000-4000-8000-000000000001';
export const VAULTED_CARD = '70ce0000-0000-4000-8000-000000000002';

/** Returns account one's headers with an idempotency key, by default a new one. */
export function headersOne(idempotencyKey: string = randomUUID()): Record<string, string> {
  return {
    'public-api-key': 'pk_sandbox_one',
    'private-secret-key': 'sk_sandbox_one',
    'x-idempotency-key': idempotencyKey,
  };
}

/** Returns account two's headers. */
export function headersTwo(idempotencyKey: string = randomUUID()): Record<string, string> {
  return {
    'public-api-key': 'pk_sandbox_two',
    'private-secret-key': 'sk_sandbox_two',
    'x-idempotency-key': idempotencyKey,
  };
}

/** A request as REST JSON. */
export type RequestJson = Record<string, unknown>;

/** A card payment of account one that is approved. */
export function cardPayment(number = '4012888888881881'): RequestJson {
  return {
    account_id: ACCOUNT_ONE,
    description: 'A book',
    merchant_order_id: 'order-1',
    country: 'US',
    amount: { currency: 'USD', value: 10 },
    payment_method: {
      type: 'CARD',
      detail: {
        card: {
          card_data: {
            number,
            expiration_month: 11,
            expiration_year: 31,
            security_code: '737',
            holder_name: 'JORDAN WHITFIELD',
          },
        },
      },
    },
    workflow: 'DIRECT',
  };
}

/** A wallet payment of account one that redirects and uses no stored object. */
export function walletPayment(): RequestJson {
  return {
    account_id: ACCOUNT_ONE,
    merchant_order_id: 'order-2',
    country: 'CO',
    amount: { currency: 'COP', value: 412900 },
    payment_method: { type: 'WALLET_B' },
    workflow: 'REDIRECT',
  };
}

/** The path to the card data. */
export const CARD_DATA = 'payment_method.detail.card.card_data';

/** Returns a copy of a request with `value` at a path (`additional_data.order.items[0].name`); undefined removes it. */
export function withField(request: RequestJson, path: string, value: unknown): RequestJson {
  const copy = structuredClone(request);
  const steps = path.split(/[.[\]]+/).filter((step) => step !== '');
  let within = copy;
  for (const [i, step] of steps.slice(0, -1).entries()) {
    const index = Number(steps[i + 1]);
    within[step] ??= Number.isInteger(index) ? Array.from({ length: index }, () => ({})) : {};
    within = within[step] as RequestJson;
  }
  const last = steps.at(-1) ?? '';
  if (value === undefined) delete within[last];
  else within[last] = value;
  return copy;
}
