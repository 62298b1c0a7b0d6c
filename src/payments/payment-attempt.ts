import { type Payment, Payment_Workflow } from '#gen/payments/v1/payment_pb.js';
import type { AttemptCard, AttemptMethod, PaymentAttempt } from '#src/connectors/connector.ts';
import type { VaultedToken } from '#src/store/stored-objects.ts';
import type { ChosenMethod } from './payment-method.ts';
import type { PaymentFacts } from './payment-record.ts';

/**
 * What the first provider is asked to do; pure.
 *
 * @param card of a card payment, as the provider must be told it.
 */
export function paymentAttempt(
  facts: PaymentFacts,
  record: Payment,
  card: AttemptCard | undefined,
  vaulted: VaultedToken | undefined,
): PaymentAttempt {
  if (!record.customerPayer) throw new Error('the record has a payer always');
  return {
    transactionId: facts.transactionId,
    paymentId: facts.paymentId,
    money: facts.money,
    description: facts.request.description,
    merchantOrderId: facts.request.merchantOrderId,
    merchantReference: facts.merchantReference,
    country: facts.request.country,
    callbackUrl: facts.request.callbackUrl,
    customerPayer: record.customerPayer,
    additionalData: facts.request.additionalData,
    method: attemptMethod(facts.method, card, vaulted),
  };
}

/** Whether it is paid with a token of one provider's own, which means nothing to another. */
export function usesProviderToken(method: ChosenMethod): boolean {
  return (
    method.kind === 'wallet' && method.workflow === Payment_Workflow.DIRECT && method.token !== undefined
  );
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
  if (!card) throw new Error('a card payment has a card');
  const { capture, installments, threeDSecureSetupId } = method.options;
  return { kind: 'card', card, capture, installments, threeDSecureSetupId };
}
