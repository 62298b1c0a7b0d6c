import { createHash } from 'node:crypto';
import { type Payment, Payment_Status, Payment_SubStatus_Value } from '#gen/payments/v1/payment_pb.js';
import type { Hint, ProviderConnection } from '#src/connectors/connector.ts';
import { ServiceError } from '#src/service-error.ts';
import { findOwnTransaction, type OwnTransaction } from '#src/store/engine/follow-ups.ts';
import { orUnavailable } from '#src/store/engine/unavailable.ts';
import { getPaymentRecord } from '#src/store/tables/payment-record.ts';
import { isUuid } from '#src/store/tables/stored-objects.ts';
import { decodeRecord } from '../stored-record.ts';
import { type FollowUpDeps, followUpNow } from './follow-up.ts';
import type { LookUpTurns } from './look-up-turns.ts';

/** Dependencies of a payer's return. */
export type ReturnDeps = FollowUpDeps & {
  readonly connections: () => ReadonlyMap<string, ProviderConnection>;
  /** Reloading the page must not call the provider again and again. */
  readonly turns: LookUpTurns;
};

/**
 * Asks the provider about the payment of a payer who came back. The return address itself is only a hint, since
 * anybody can write one.
 *
 * @param returnQuery query string of the return address, without the question mark.
 * @returns the payment as it stands then.
 * @throws ServiceError PAYMENT_NOT_FOUND.
 */
export async function returnPayer(
  deps: ReturnDeps,
  paymentId: string,
  returnQuery: string,
): Promise<Payment> {
  const own = isUuid(paymentId)
    ? await orUnavailable(findOwnTransaction(deps.database, paymentId))
    : undefined;
  if (!own) throw new ServiceError('PAYMENT_NOT_FOUND', 'there is no such payment');
  const before = await current(deps, paymentId, own);
  const connection = deps.connections().get(own.connectionId);
  if (!connection || !mayChange(before, own)) return before;
  const hint: Hint = returnQuery.length <= MAX_QUERY_LENGTH ? { returnQuery } : {};
  await deps.turns.take(paymentId, {
    ask: () => followUpNow(deps, connection, own.transactionId, { hint }),
    isOpen: async () => mayChange(await current(deps, paymentId, own), own),
    // A provider without look-up learns of the payer's agreement by what they bring back.
    evidence: connection.lookUp
      ? ''
      : createHash('sha256')
          .update(hint.returnQuery ?? '')
          .digest('base64'),
  });
  return current(deps, paymentId, own);
}

/**
 * Closes a payment whose payer has left the provider's page and wants to pay another way. Only the provider's word that it
 * is closed, or was paid, ends it; otherwise it stays open, since its payer might yet be charged.
 */
export async function closePayment(deps: ReturnDeps, paymentId: string): Promise<void> {
  const own = await orUnavailable(findOwnTransaction(deps.database, paymentId));
  const connection = own && deps.connections().get(own.connectionId);
  if (!connection) return;
  const isOpen = async () => awaitsPayer(await current(deps, paymentId, own));
  if (!(await isOpen())) return;
  await deps.turns.take(paymentId, {
    ask: () => followUpNow(deps, connection, own.transactionId, { close: true }),
    isOpen,
    evidence: 'close',
  });
}

/** Returns true if a payment needs nothing but its payer's approval. */
function awaitsPayer({ status, subStatus }: Payment): boolean {
  return (
    status === Payment_Status.READY_TO_PAY || subStatus === Payment_SubStatus_Value.WAITING_ADDITIONAL_STEP
  );
}

/** Longest query string that is passed on: providers put a few ids and a signed text into it. */
const MAX_QUERY_LENGTH = 8_192;
const OPEN = new Set([Payment_Status.READY_TO_PAY, Payment_Status.PENDING]);

/** Returns true if asking may tell something new: a payer may have paid after their payment expired here, too. */
function mayChange({ status }: Payment, { isReleased }: OwnTransaction): boolean {
  return OPEN.has(status) || (status === Payment_Status.EXPIRED && !isReleased);
}

async function current(
  { database }: ReturnDeps,
  paymentId: string,
  { accountId }: OwnTransaction,
): Promise<Payment> {
  const record = await orUnavailable(getPaymentRecord(database, accountId, paymentId));
  if (!record) throw new ServiceError('PAYMENT_NOT_FOUND', 'there is no such payment');
  return decodeRecord(record);
}

/**
 * Returns the address to which the payer is sent: the merchant's `callback_url` with `payment_id` and `status` added.
 * A host alone gets `https://`.
 *
 * @returns undefined if the payment has none.
 */
export function callbackAddress(payment: Payment): string | undefined {
  const url = merchantAddress(payment.callbackUrl);
  if (!url) return undefined;
  url.searchParams.set('payment_id', payment.id);
  url.searchParams.set('status', Payment_Status[payment.status] ?? '');
  return url.href;
}

/** Returns the address that a `callback_url` stands for; undefined if there is none. */
export function merchantAddress(callbackUrl: string | undefined): URL | undefined {
  if (!callbackUrl) return undefined;
  const hasScheme = /^[a-z][a-z0-9+.-]*:\/?\/?/i.test(callbackUrl) && !isHostWithPort(callbackUrl);
  return URL.parse(hasScheme ? callbackUrl : `https://${callbackUrl}`) ?? undefined;
}

/** `shop.example:8443/back` is a host with a port, not a scheme. */
function isHostWithPort(text: string): boolean {
  return /^[a-z0-9.-]+:\d/i.test(text);
}
