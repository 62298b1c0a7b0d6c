import { request as httpRequest } from 'node:http';
import { ACCOUNT_ONE, ACCOUNT_TWO, headersOne, headersTwo } from '../support/payment-requests.ts';
import type { Random } from './random.ts';

/** A merchant's request with its key and all its responses. */
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

/** A response: a status and a body, or nothing. */
export type Answer = {
  /** Undefined if the connection broke. */
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
  /** False for an authorization only; random by default. */
  readonly capture?: boolean;
  /** By default, a card that every provider approves. */
  readonly cardNumber?: string;
  /** Pays with this wallet, at the provider's page, instead of by card. */
  readonly wallet?: string;
  /** Pays with the code of this local method, in its country and currency. */
  readonly code?: Code;
  /** Only verifies the card, without a charge. */
  readonly verify?: boolean;
  /** A field of the request that the previous release does not know (see cases/releases.ts). */
  readonly nationality?: string;
};

/** The local methods of the judges. */
export type Code = 'PIX' | 'SPEI';

/** The judge's acquirer ONE softly declines this card, and TWO approves it. */
export const DECLINED_AT_ACQUIRER_ONE = '4000000000006009';

/** The maximum duration of any request. */
export const REQUEST_DEADLINE_MS = 30_000;

/** A currency, its number of decimal places, and the step of its amounts in minor units. */
export type Currency = { readonly currency: string; readonly digits: number; readonly step?: number };

/**
 * Makes an order in one of the `currencies`, for a card payment unless its options name a wallet or a local method.
 * Security codes begin with a 9 and no other four-digit value does (the last four of a card, an amount), so that every
 * occurrence is a code.
 */
export function makeOrder(
  random: Random,
  currencies: readonly Currency[],
  options: OrderOptions = {},
): Order {
  const { account = 'one', key = `key-${random.integer(0, 2 ** 30)}-${random.integer(0, 2 ** 30)}` } =
    options;
  const accountId = account === 'one' ? ACCOUNT_ONE : ACCOUNT_TWO;
  const local = options.code && LOCAL[options.code];
  const { currency, digits, step = 1 }: Currency = local?.money ?? random.pick(currencies);
  const drawn = options.minorUnits ?? random.integer(10_000, 9_999_999);
  const minorUnits = options.verify ? 0 : drawn - (drawn % step);
  const cardNumber = options.cardNumber ?? makeCardNumber(random);
  const securityCode = String(random.integer(9_000, 9_999));
  const text = String(minorUnits).padStart(digits + 1, '0');
  const body = JSON.stringify({
    account_id: accountId,
    ...(options.description && { description: options.description }),
    // Some providers do not receive the description.
    merchant_order_id: `${options.description ?? ''} order ${key}`.trim(),
    // The judge's ledger stores the reference, and thus shows which account and key were charged.
    merchant_reference: `${account} ${key}`,
    country: options.country ?? local?.country ?? 'US',
    customer_payer: {
      // Some providers require it of a payer with a card.
      email: PAYER.email,
      ...(options.nationality && { nationality: options.nationality }),
      ...local?.payer,
    },
    amount: { currency, value: digits ? `${text.slice(0, -digits)}.${text.slice(-digits)}` : text },
    ...((options.code ?? options.wallet) === undefined
      ? byCard(random, options, { number: cardNumber, security_code: securityCode })
      : { payment_method: { type: options.code ?? options.wallet }, workflow: 'REDIRECT' }),
  });
  return { account, accountId, key, body, minorUnits, currency, cardNumber, securityCode, answers: [] };
}

const PAYER = { first_name: 'Ana', last_name: 'Souza', email: 'ana@shop.example' };

/** The country and currency of each local method, and the payer that some providers require. */
const LOCAL: Readonly<
  Record<Code, { readonly country: string; readonly money: Currency; readonly payer: object }>
> = {
  PIX: {
    country: 'BR',
    money: { currency: 'BRL', digits: 2 },
    payer: { ...PAYER, document: { document_type: 'CPF', document_number: '52998224725' } },
  },
  SPEI: { country: 'MX', money: { currency: 'MXN', digits: 2 }, payer: PAYER },
};

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

/** Returns sixteen digits that pass the Luhn check and have no meaning for the simulated provider. */
function makeCardNumber(random: Random): string {
  const digits = `5204${String(random.integer(0, 99_999_999)).padStart(8, '0')}${random.integer(100, 899)}`;
  let sum = 0;
  for (const [i, digit] of [...digits].entries()) {
    const weighted = Number(digit) * (i % 2 === 0 ? 2 : 1);
    sum += weighted > 9 ? weighted - 9 : weighted;
  }
  return digits + ((10 - (sum % 10)) % 10);
}

/** Sends an order to a replica and records the response. Never throws: the absence of a response is a result, too. */
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

/** The fields that are read from a payment's JSON. */
export type PaymentJson = {
  readonly id: string;
  readonly status: string;
  readonly sub_status: string;
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

/** Reads a payment with GetPayment; undefined if that fails. */
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

/** Uses a separate connection for each request, so that no request is affected by another request's connection. */
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

/** Returns the payment that a response contains. */
export function paymentOf(answer: Answer): PaymentJson | undefined {
  return answer.status === 201 ? JSON.parse(answer.body) : undefined;
}

/** Returns the problem code that a response contains. */
export function reasonOf(answer: Answer): string | undefined {
  return answer.status === undefined || answer.status < 400 ? undefined : JSON.parse(answer.body).code;
}
