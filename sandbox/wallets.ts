import { ApiError } from './api-error.ts';
import { type Behaviour, type Order, readOrder } from './behaviour.ts';
import type { Decided } from './charges.ts';
import { type Call, newEntry, newId } from './entries.ts';
import { dueOf, readCommonDetails, readExpiry, readMoney, readPage, readTexts } from './entry-details.ts';
import { type JsonRecord, optionalText, text } from './request-body.ts';

/** Time that a payer has for a wallet order. */
export const ORDER_VALID_MS = 3 * 60 * 60_000;

const WALLET = /^[A-Z][A-Z0-9_]{0,254}$/;
/** Wallets whose payers only approve an order. The money moves when the merchant completes it. */
const WALLETS_TO_COMPLETE: ReadonlySet<string> = new Set(['WALLET_D']);

/**
 * Reads POST /v1/wallet-orders: an order that the payer pays on the provider's checkout page.
 *
 * @throws ApiError naming the field at fault.
 */
export function decideWalletOrder(body: JsonRecord, call: Call, publicUrl: string): Decided {
  const id = newId('wallet_order');
  const fields = readFields(body);
  const { order, behaviour } = readWalletOrder(body);
  const needsCompletion = WALLETS_TO_COMPLETE.has(fields.wallet);
  const entry = newEntry({
    kind: 'wallet_order',
    id,
    call,
    ...readMoney(body),
    status: 'created',
    fields: { ...fields, needs_completion: needsCompletion, checkout_url: `${publicUrl}/checkout/${id}` },
    due: dueOf(behaviour, needsCompletion ? 'payer_approved' : 'paid', 'declined') ?? {
      status: 'expired',
      atMs: readExpiry(body, order, ORDER_VALID_MS),
    },
    details: {
      ...readCommonDetails(body, order),
      page: readPage(body),
      ...(needsCompletion && { needsCompletion }),
    },
  });
  return { entry, behaviour };
}

/**
 * Reads POST /v1/wallet-enrollments: a payment with an enrolled wallet, which the provider confirms later.
 *
 * @throws ApiError naming the field at fault.
 */
export function decideWalletEnrollment(body: JsonRecord, call: Call): Decided {
  optionalText(body, 'wallet_token');
  const { order, behaviour } = readWalletOrder(body);
  const entry = newEntry({
    kind: 'wallet_enrollment',
    call,
    ...readMoney(body),
    status: 'pending',
    fields: { ...readFields(body), card_type: optionalText(body, 'card_type') ?? null },
    due: dueOf(behaviour, 'paid', 'declined'),
    details: readCommonDetails(body, order),
  });
  return { entry, behaviour };
}

/**
 * Reads POST /v1/wallet-agreements: the provider's page asks the payer for consent to charge the wallet later.
 *
 * @throws ApiError naming the field at fault.
 */
export function decideWalletAgreement(body: JsonRecord, call: Call, publicUrl: string): Decided {
  const id = newId('wallet_agreement');
  const { order, behaviour } = readWalletOrder(body);
  const fields = readFields(body);
  const entry = newEntry({
    kind: 'wallet_agreement',
    id,
    call,
    ...NO_MONEY,
    status: 'created',
    fields: { ...fields, agreement_url: `${publicUrl}/agreement/${id}`, wallet_token: null },
    due: { status: 'expired', atMs: readExpiry(body, order, ORDER_VALID_MS) },
    details: {
      ...readCommonDetails(body, order),
      page: { reference: fields.wallet, description: fields.description ?? '', ...NO_MONEY, items: [] },
    },
  });
  return { entry, behaviour };
}

const NO_MONEY = { amount: 0, currency: '' };

/** Refuses an immediate decline, since the payer has not seen the order yet. */
function readWalletOrder(body: JsonRecord): { order: Order; behaviour: Behaviour } {
  const order = readOrder(optionalText(body, 'description'));
  const behaviour = order.behaviour ?? { kind: 'approve' };
  if (behaviour.kind !== 'decline') return { order, behaviour };
  throw new ApiError(400, 'invalid_request', 'a wallet payment cannot be declined at once', 'description');
}

function readFields(body: JsonRecord) {
  return { wallet: text(body, 'wallet', WALLET), ...readTexts(body) };
}
