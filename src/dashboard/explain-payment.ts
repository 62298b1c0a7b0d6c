import { create, type Message, type MessageInitShape } from '@bufbuild/protobuf';
import { type Timestamp, timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  type ExplainRouteRequest,
  ExplainRouteRequestSchema,
  type ExplainRouteResponse,
} from '#gen/payments/v1/operator_service_pb.js';
import type { PaymentMethodInputSchema } from '#gen/payments/v1/payment_method_pb.js';
import type { Payment } from '#gen/payments/v1/payment_pb.js';
import { CreatePaymentRequestSchema } from '#gen/payments/v1/payment_service_pb.js';
import { passesLuhn } from '#src/luhn.ts';
import { localDetailOf } from '#src/payments/model/record.ts';
import { ServiceError } from '#src/service-error.ts';

/** Explains how the catalogue in force would route a payment. @throws ServiceError if it would refuse the payment. */
export type Explain = (request: ExplainRouteRequest) => Promise<ExplainRouteResponse>;

/** Facts that conditions use but a payment's record does not contain. */
export type MadeWith = {
  readonly idempotencyKey: string;
  /** false for a request that only authorizes. */
  readonly capture: boolean;
  /** true: a card was charged, or the card behind a wallet's token. */
  readonly chargesCard: boolean;
  /** The time of the explanation, in milliseconds since the epoch. */
  readonly nowMs: number;
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

function requestOf(payment: Payment, made: MadeWith): ExplainRouteRequest {
  const { amount } = payment;
  const [first] = payment.transactionsHistory;
  const paymentMethod = methodOf(payment, made);
  const isLocal = localDetailOf(payment.paymentMethod?.paymentMethodDetail) !== undefined;
  return create(ExplainRouteRequestSchema, {
    idempotencyKey: made.idempotencyKey.slice(0, 255),
    payment: create(CreatePaymentRequestSchema, {
      accountId: payment.accountId,
      merchantOrderId: payment.merchantOrderId || 'unknown',
      merchantReference: first?.merchantReference ?? '',
      country: payment.country,
      amount: { currency: amount?.currency ?? '', ...(amount?.value && { value: amount.value }) },
      workflow: payment.workflow,
      paymentMethod,
      // Connections say which data of the payer a local method needs.
      ...(isLocal && payment.customerPayer && { customerPayer: payment.customerPayer }),
    }),
  });
}

type MethodInit = Exclude<MessageInitShape<typeof PaymentMethodInputSchema>, Message>;

/** Rebuilds the payment method of the request, with stand-ins for what no record contains. */
function methodOf(
  { paymentMethod, createdAt }: Payment,
  { capture, chargesCard, nowMs }: MadeWith,
): MethodInit {
  const { type = '', vaultedToken = '', paymentMethodDetail } = paymentMethod ?? {};
  const kind = paymentMethodDetail?.kind;
  switch (kind?.case) {
    case 'card': {
      const { cardData, installments, verify } = kind.value;
      const number = standInNumber(cardData?.iin ?? '', cardData?.numberLength ?? 16);
      const value = { cardData: { ...STAND_IN, number }, capture, installments, verify };
      return { type, detail: { kind: { case: 'card', value } } };
    }
    case 'bankTransfer': {
      const { bankId = '', accountType = '', expiresAt } = kind.value;
      const value = { bankId, accountType, ...sameTerm(createdAt, expiresAt, nowMs) };
      return { type, detail: { kind: { case: 'bankTransfer', value } } };
    }
    case 'ticket': {
      const value = sameTerm(createdAt, kind.value.expiresAt, nowMs);
      return { type, detail: { kind: { case: 'ticket', value } } };
    }
    default: {
      if (!chargesCard) return { type, vaultedToken };
      const { verify = false, storedCredentials: stored } = kind?.value ?? {};
      const { reason = '', usage = '' } = stored ?? {};
      const value = {
        paymentToken: '{}',
        capture,
        verify,
        ...(stored && { storedCredentials: { reason, usage } }),
      };
      return { type, detail: { kind: { case: 'wallet', value } } };
    }
  }
}

/** Returns an expiry that is as far from now as a record's is from its creation. */
function sameTerm(createdAt: Timestamp | undefined, expiresAt: Timestamp | undefined, nowMs: number) {
  if (!createdAt || !expiresAt) return {};
  return { expiresAt: timestampFromMs(nowMs + timestampMs(expiresAt) - timestampMs(createdAt)) };
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
