import { request as httpRequest } from 'node:http';
import { ACCOUNT_ONE, ACCOUNT_TWO, headersOne, headersTwo } from '../support/payment-requests.ts';
import type { Random } from './random.ts';

/** One request of a merchant, under one key, with all the responses that it got. */
export type Order = {
  readonly account: 'one' | 'two';
  readonly accountId: string;
  readonly key: string;
  readonly body: string;
  readonly minorUnits: number;
  readonly currency: string;
  readonly cardNumber: string;
  readonly securityCode: string;
  readonly answers: Answer[];
};

/** The response to one request: a status and a body, or nothing. */
export type Answer = {
  /** undefined: the connection broke. */
  readonly status: number | undefined;
  readonly body: string;
  readonly replayed: boolean;
  readonly tookMs: number;
};

export type OrderOptions = {
  /** Tells the simulated provider how to behave: `sandbox:…`. */
  readonly description?: string;
  readonly account?: 'one' | 'two';
  readonly country?: string;
  readonly key?: string;
  readonly minorUnits?: number;
  readonly vault?: boolean;
  /** false: authorization only; drawn when absent. */
  readonly capture?: boolean;
  /** By default one that is approved everywhere. */
  readonly cardNumber?: string;
  /** Pays by this wallet, at whose page the payer pays, instead of by card. */
  readonly wallet?: string;
  /** Has the card verified: nothing is charged. */
  readonly verify?: boolean;
  /** A field of the request that the release before does not know (see cases/releases.ts). */
  readonly nationality?: string;
};

/** The judge's acquirer ONE declines this card (soft), TWO approves it. */
export const DECLINED_AT_ACQUIRER_ONE = '4000000000006009';

/** No request takes longer, whatever happens to it. */
export const REQUEST_DEADLINE_MS = 30_000;

/** A currency, its digits, and of how many of its smallest unit an amount is a multiple. */
export type Currency = { readonly currency: string; readonly digits: number; readonly step?: number };

/**
 * Makes up an order, for a card payment unless its options name a wallet, in one of the `currencies`. Security codes begin with a 9, and nothing else that is four digits long does
 * (the last four of a card, an amount): so where a code shows, it is the code.
 */
export function makeOrder(
  random: Random,
  currencies: readonly Currency[],
  options: OrderOptions = {},
): Order {
  const { account = 'one', key = `key-${random.integer(0, 2 ** 30)}-${random.integer(0, 2 ** 30)}` } =
    options;
  const accountId = account === 'one' ? ACCOUNT_ONE : ACCOUNT_TWO;
  const { currency, digits, step = 1 } = random.pick(currencies);
  const drawn = options.minorUnits ?? random.integer(10_000, 9_999_999);
  const minorUnits = options.verify ? 0 : drawn - (drawn % step);
  const cardNumber = options.cardNumber ?? makeCardNumber(random);
  const securityCode = String(random.integer(9_000, 9_999));
  const text = String(minorUnits).padStart(digits + 1, '0');
  const body = JSON.stringify({
    account_id: accountId,
    ...(options.description && { description: options.description }),
    // Not every provider is told of the description.
    merchant_order_id: `${options.description ?? ''} order ${key}`.trim(),
    // It reaches the judge's ledger, which so tells by itself what was charged for which account and key.
    merchant_reference: `${account} ${key}`,
    country: options.country ?? 'US',
    ...(options.nationality && { customer_payer: { nationality: options.nationality } }),
    amount: { currency, value: digits ? `${text.slice(0, -digits)}.${text.slice(-digits)}` : text },
    ...(options.wallet === undefined
      ? byCard(random, options, { number: cardNumber, security_code: securityCode })
      : { payment_method: { type: options.wallet }, workflow: 'REDIRECT' }),
  });
  return { account, accountId, key, body, minorUnits, currency, cardNumber, securityCode, answers: [] };
}

function byCard(
  random: Random,
  { vault, capture, verify }: OrderOptions,
  card: { readonly number: string; readonly security_code: string },
) {
  return {
    payment_method: {
      type: 'CARD',
      vault_on_success: vault ?? random.integer(0, 3) === 0,
      detail: {
        card: {
          ...(verify && { verify: true }),
          capture: capture ?? random.integer(0, 1) === 1,
          card_data: {
            ...card,
            expiration_month: 11,
            expiration_year: 31,
            holder_name: 'JORDAN WHITFIELD',
          },
        },
      },
    },
    workflow: 'DIRECT',
  };
}

/** Sixteen digits that pass Luhn's check and mean nothing to the simulated provider. */
function makeCardNumber(random: Random): string {
  const digits = `5204${String(random.integer(0, 99_999_999)).padStart(8, '0')}${random.integer(100, 899)}`;
  let sum = 0;
  for (const [i, digit] of [...digits].entries()) {
    const weighted = Number(digit) * (i % 2 === 0 ? 2 : 1);
    sum += weighted > 9 ? weighted - 9 : weighted;
  }
  return digits + ((10 - (sum % 10)) % 10);
}

/** Sends an order to a replica. It never throws: that nothing came back is an answer too, and is kept like the others. */
export async function send(url: string, order: Order, signal?: AbortSignal): Promise<Answer> {
  const startedMs = performance.now();
  const headers = order.account === 'one' ? headersOne(order.key) : headersTwo(order.key);
  const got = await exchange(`${url}/v1/payments`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: order.body,
    signal,
  });
  const answer = { ...got, tookMs: performance.now() - startedMs };
  order.answers.push(answer);
  return answer;
}

/** The fields of a payment's JSON that are looked at. */
export type PaymentJson = {
  readonly id: string;
  readonly status: string;
  readonly created_at: string;
  readonly transactions: {
    readonly id: string;
    readonly provider_data?: { readonly transaction_id: string };
  };
  readonly transactions_history: readonly {
    readonly id: string;
    readonly status: string;
    readonly parent_transaction_id?: string;
  }[];
};

/** A payment as GetPayment tells it; undefined when it does not. */
export async function getPayment(url: string, order: Order, id: string): Promise<PaymentJson | undefined> {
  const headers = order.account === 'one' ? headersOne() : headersTwo();
  const got = await exchange(`${url}/v1/payments/${id}`, {
    method: 'GET',
    headers,
    body: undefined,
    signal: undefined,
  });
  return got.status === 200 ? JSON.parse(got.body) : undefined;
}

/** A connection of its own for each request: none of it hides what becomes of a connection. */
export function exchange(
  url: string,
  options: {
    readonly method: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly body: string | Buffer | undefined;
    readonly signal?: AbortSignal | undefined;
  },
): Promise<Omit<Answer, 'tookMs'>> {
  return new Promise((resolve) => {
    const nothing = () => resolve({ status: undefined, body: '', replayed: false });
    const { method, headers, signal } = options;
    const request = httpRequest(url, { method, headers, agent: false, ...(signal && { signal }) });
    const timer = setTimeout(() => request.destroy(), REQUEST_DEADLINE_MS);
    request.once('close', () => clearTimeout(timer));
    request.once('error', nothing);
    request.once('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.once('error', nothing);
      response.once('aborted', nothing);
      response.once('end', () => {
        const replayed = response.headers['idempotent-replayed'] === 'true';
        resolve({ status: response.statusCode, body: Buffer.concat(chunks).toString(), replayed });
      });
    });
    request.end(options.body);
  });
}

/** The body of a payment that was answered. */
export function paymentOf(answer: Answer): PaymentJson | undefined {
  return answer.status === 201 ? JSON.parse(answer.body) : undefined;
}

/** The code of a problem that was answered. */
export function reasonOf(answer: Answer): string | undefined {
  return answer.status === undefined || answer.status < 400 ? undefined : JSON.parse(answer.body).code;
}
