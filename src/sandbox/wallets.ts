import { randomUUID } from 'node:crypto';
import type { Call } from './charges.ts';
import type { LedgerEntry } from './ledger.ts';
import {
  integer,
  type JsonRecord,
  objects,
  optionalInteger,
  optionalObject,
  optionalText,
  text,
} from './request-body.ts';

/** What the checkout page shows the payer. Amounts are integer minor units of `currency` (ISO 4217). */
export type OrderDetails = {
  readonly reference: string;
  readonly description: string;
  readonly amount: number;
  readonly currency: string;
  readonly items: readonly {
    readonly name: string;
    readonly quantity: number;
    readonly unitAmount: number | undefined;
  }[];
};

const WALLET = /^[A-Z][A-Z0-9_]{0,254}$/;
const AMOUNT = { min: 1, max: Number.MAX_SAFE_INTEGER };

/**
 * Reads POST /v1/wallet-orders: an order that the payer pays at the provider's checkout page.
 *
 * @throws ApiError naming the field at fault.
 */
export function decideWalletOrder(body: JsonRecord, call: Call, publicUrl: string): LedgerEntry {
  const id = `wo_${randomUUID()}`;
  const details = readDetails(body);
  const answer = {
    ...answerOf('wallet_order', id, body, call),
    status: 'created',
    checkout_url: `${publicUrl}/checkout/${id}`,
  };
  return entryOf('wallet_order', answer, call, JSON.stringify(details));
}

/**
 * Reads POST /v1/wallet-enrollments: a payment by a wallet that the payer enrolled, confirmed later.
 *
 * @throws ApiError naming the field at fault.
 */
export function decideWalletEnrollment(body: JsonRecord, call: Call): LedgerEntry {
  const id = `we_${randomUUID()}`;
  optionalText(body, 'wallet_token');
  const cardType = optionalText(body, 'card_type') ?? null;
  const answer = { ...answerOf('wallet_enrollment', id, body, call), status: 'pending', card_type: cardType };
  return entryOf('wallet_enrollment', answer, call, undefined);
}

type WalletAnswer = ReturnType<typeof answerOf> & { readonly status: string };

function answerOf(kind: 'wallet_order' | 'wallet_enrollment', id: string, body: JsonRecord, call: Call) {
  return {
    object: kind,
    id,
    idempotency_key: call.idempotencyKey,
    account: call.account,
    acquirer: call.acquirer,
    wallet: text(body, 'wallet', WALLET),
    amount: integer(body, 'amount', AMOUNT),
    currency: text(body, 'currency', /^[A-Z]{3}$/),
    reference: optionalText(body, 'reference') ?? null,
    description: optionalText(body, 'description') ?? null,
    created_at: new Date().toISOString(),
  };
}

function entryOf(
  kind: 'wallet_order' | 'wallet_enrollment',
  answer: WalletAnswer,
  call: Call,
  details: string | undefined,
): LedgerEntry {
  return {
    id: answer.id,
    idempotencyKey: call.idempotencyKey,
    kind,
    acquirer: call.acquirer,
    status: answer.status,
    responseCode: undefined,
    amount: answer.amount,
    currency: answer.currency,
    cardIin: undefined,
    cardLastFour: undefined,
    answerStatus: 201,
    answer: JSON.stringify(answer),
    details,
  };
}

function readDetails(body: JsonRecord): OrderDetails {
  const order = optionalObject(body, 'order');
  const items = order ? objects(order, 'order.items') : [];
  return {
    reference: optionalText(body, 'reference') ?? '',
    description: optionalText(body, 'description') ?? '',
    amount: integer(body, 'amount', AMOUNT),
    currency: text(body, 'currency', /^[A-Z]{3}$/),
    items: items.map((item) => ({
      name: optionalText(item, 'order.items.name') ?? '',
      quantity: optionalInteger(item, 'order.items.quantity', { min: 0, max: Number.MAX_SAFE_INTEGER }) ?? 1,
      unitAmount: optionalInteger(item, 'order.items.unit_amount', {
        min: Number.MIN_SAFE_INTEGER,
        max: Number.MAX_SAFE_INTEGER,
      }),
    })),
  };
}
