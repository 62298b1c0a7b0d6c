import { create } from '@bufbuild/protobuf';
import {
  type ExplainRouteRequest,
  ExplainRouteRequestSchema,
  type ExplainRouteResponse,
} from '#gen/payments/v1/operator_service_pb.js';
import type { Payment } from '#gen/payments/v1/payment_pb.js';
import { CreatePaymentRequestSchema } from '#gen/payments/v1/payment_service_pb.js';
import { passesLuhn } from '#src/luhn.ts';
import { ServiceError } from '#src/service-error.ts';

/** Explains how the catalogue in force would route a payment. @throws ServiceError if it would refuse the payment. */
export type Explain = (request: ExplainRouteRequest) => Promise<ExplainRouteResponse>;

/** Facts that conditions use but a payment's record does not contain. */
export type MadeWith = {
  readonly idempotencyKey: string;
  /** false for a request that only authorizes. */
  readonly capture: boolean;
};

/**
 * Explains how the catalogue in force would route a recorded payment.
 *
 * @returns the refusal if the catalogue would no longer accept the payment.
 */
export async function explainPayment(
  explain: Explain,
  payment: Payment,
  made: MadeWith,
): Promise<ExplainRouteResponse | ServiceError> {
  try {
    return await explain(requestOf(payment, made));
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw error;
  }
}

function requestOf(payment: Payment, { idempotencyKey, capture }: MadeWith): ExplainRouteRequest {
  const { paymentMethod, amount } = payment;
  const kind = paymentMethod?.paymentMethodDetail?.kind;
  const card = kind?.case === 'card' ? kind.value : undefined;
  const { iin = '', numberLength } = card?.cardData ?? {};
  const [first] = payment.transactionsHistory;
  const detail = card && {
    kind: {
      case: 'card' as const,
      value: {
        cardData: { ...STAND_IN, number: standInNumber(iin, numberLength ?? 16) },
        capture,
        installments: card.installments,
        verify: card.verify,
      },
    },
  };
  return create(ExplainRouteRequestSchema, {
    idempotencyKey: idempotencyKey.slice(0, 255),
    payment: create(CreatePaymentRequestSchema, {
      accountId: payment.accountId,
      merchantOrderId: payment.merchantOrderId || 'unknown',
      merchantReference: first?.merchantReference ?? '',
      country: payment.country,
      amount: { currency: amount?.currency ?? '', ...(amount?.value && { value: amount.value }) },
      workflow: payment.workflow,
      paymentMethod: {
        type: paymentMethod?.type ?? '',
        ...(!card && { vaultedToken: paymentMethod?.vaultedToken ?? '' }),
        ...(detail && { detail }),
      },
    }),
  });
}

/** Placeholders for values that no condition uses. */
const STAND_IN = { expirationMonth: 12, expirationYear: 99, holderName: 'STAND IN' };

/**
 * Makes up a card number for explaining a route: the issuer's digits, zeros and a check digit.
 *
 * @param iin first digits of the card, usually 1 to 8.
 */
export function standInNumber(iin: string, length = 16): string {
  const start = iin.padEnd(Math.max(length, 12) - 1, '0');
  for (let check = 0; check <= 9; check++) if (passesLuhn(start + check)) return start + check;
  return start;
}
