import { timestampMs } from '@bufbuild/protobuf/wkt';
import { type Payment, Payment_Workflow } from '#gen/payments/v1/payment_pb.js';
import type { AttemptCard, AttemptFacts, AttemptMethod, PaymentAttempt } from '#src/connectors/attempt.ts';
import type { Capabilities } from '#src/connectors/capabilities.ts';
import { parseMoney } from '#src/money.ts';
import type { MethodKind } from '#src/store/engine/claim-payment.ts';
import type { VaultedToken } from '#src/store/tables/stored-objects.ts';
import type { ChosenMethod } from './payment-method.ts';

/**
 * Builds the attempt that is sent to the record's provider.
 *
 * @param stored the card to send, for a card payment, and the stored method, if one is used.
 */
export function paymentAttempt(
  record: Payment,
  publicUrl: string,
  terms: Pick<Capabilities, 'redirectValidMinutes'>,
  method: ChosenMethod,
  stored: { readonly card: AttemptCard | undefined; readonly vaulted: VaultedToken | undefined },
): PaymentAttempt {
  return {
    ...attemptFacts(record, publicUrl, terms),
    method: attemptMethod(method, stored.card, stored.vaulted),
  };
}

/**
 * Builds the fields of an attempt other than its payment method, from the record alone, so that a look-up days later
 * sends the same fields.
 *
 * @param record the record whose `transactions` field is the attempt.
 * @param publicUrl the service's URL for providers and payers, without a trailing slash.
 * @param terms capabilities of the attempt's connection.
 */
export function attemptFacts(
  record: Payment,
  publicUrl: string,
  terms: Pick<Capabilities, 'redirectValidMinutes'>,
): AttemptFacts {
  const { transactions: transaction, customerPayer, createdAt } = record;
  const money = parseMoney(transaction?.amount?.value ?? '', record.amount?.currency ?? '');
  if (!transaction || !customerPayer || !createdAt || !money)
    throw new Error(`record ${record.id} is incomplete`);
  const connectionId = transaction.connectionData?.id ?? '';
  return {
    transactionId: transaction.id,
    paymentId: record.id,
    money,
    description: record.description,
    merchantOrderId: record.merchantOrderId,
    merchantReference: transaction.merchantReference,
    country: record.country,
    returnUrl: `${publicUrl}/v1/payments/${record.id}/return`,
    cancelUrl: `${publicUrl}/v1/payments/${record.id}/return/canceled`,
    notificationUrl: `${publicUrl}/v1/providers/${encodeURIComponent(connectionId)}/notifications`,
    expiresAtMs: timestampMs(createdAt) + terms.redirectValidMinutes * 60_000,
    customerPayer,
    additionalData: record.additionalData,
    taxes: record.taxes,
    metadata: record.metadata.map(({ key, value }) => ({ key: String(key), value: String(value) })),
  };
}

/** Returns how the payer pays an attempt, and until when. */
export function wayOfPayer({ method, expiresAtMs }: Pick<PaymentAttempt, 'method' | 'expiresAtMs'>) {
  const isOnPage = method.kind === 'wallet_redirect';
  return {
    methodKind: METHOD_KINDS[method.kind],
    payerDueAt: isOnPage ? new Date(expiresAtMs).toISOString() : undefined,
  };
}

const METHOD_KINDS = {
  card: 'CARD',
  wallet_enrollment: 'WALLET',
  wallet_redirect: 'PAYER_PAGE',
} as const satisfies Record<AttemptMethod['kind'], MethodKind>;

/** Returns true if a wallet payment redirects its payer to the wallet instead of charging an enrollment. */
export function isWalletRedirect({ workflow, paymentMethod }: Payment): boolean {
  const isOfCheckout = workflow === Payment_Workflow.SDK_CHECKOUT && !paymentMethod?.vaultedToken;
  return workflow === Payment_Workflow.REDIRECT || isOfCheckout;
}

function attemptMethod(
  method: ChosenMethod,
  card: AttemptCard | undefined,
  vaulted: VaultedToken | undefined,
): AttemptMethod {
  if (method.kind === 'wallet') {
    if (method.workflow === Payment_Workflow.REDIRECT) return { kind: 'wallet_redirect', type: method.type };
    return {
      kind: 'wallet_enrollment',
      type: method.type,
      token: vaulted?.providerToken,
      cardType: method.cardType,
    };
  }
  if (!card) throw new Error('the card payment has no card');
  return { kind: 'card', card, ...method.options };
}
