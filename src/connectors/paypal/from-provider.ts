import type { JsonObject } from '@bufbuild/protobuf';
import type { ProviderData } from '#gen/payments/v1/payment_pb.js';
import type { Money } from '#src/money.ts';
import type { HttpResult } from '../kit/http-client.ts';
import {
  alarmingOutcome,
  answeredAboutAnother,
  approvedOutcome,
  correcting,
  differingMoney,
  fromResult,
  isSuccess,
  withMovedMoney,
} from '../kit/provider-answer.ts';
import type { ShownAs } from '../kit/provider-client.ts';
import { SOFT_DECLINE } from '../kit/refusal.ts';
import type { Corrections } from '../port/connector.ts';
import type { Movement, Outcome } from '../port/outcome.ts';
import { type Order, providerDataOf, readOrder, type Transaction, type Unit } from './answers.ts';
import { declineByProcessor, fromRefusal, payerLinkOf } from './refusals.ts';

/** Values that a response must match. */
export type Asked = {
  readonly transactionId: string;
  readonly money: Money;
  /** undefined until PayPal has reported it. */
  readonly orderId: string | undefined;
  readonly shownAs: ShownAs;
};

/**
 * Reads an HTTP result: `read` reads the created object. The issue in a refusal shows whether the payment was declined
 * or only the request was refused.
 */
export function fromAnswer(
  result: HttpResult,
  shownAs: ShownAs,
  read: (body: JsonObject) => Outcome,
): Outcome {
  return fromResult(result, (body, answer) =>
    isSuccess(answer.status) ? read(body) : fromRefusal(body, answer, shownAs),
  );
}

/**
 * Reads the result of creating an order. A lost response does no harm here: no money moves without the payer's
 * approval, and no payer was sent to approve. A response that contradicts the request is still an alarm.
 */
export function fromCreation(result: HttpResult, asked: Asked): Outcome {
  const outcome = fromAnswer(result, asked.shownAs, (body) => {
    const created = fromOrder(readOrder(body), asked);
    if (created.kind === 'awaits_payer' || isAlarm(created)) return created;
    return alarmingOutcome('the new order is not waiting for its payer');
  });
  if (outcome.kind !== 'unknown' || isAlarm(outcome)) return outcome;
  const detail = `the request that was sent cannot move money: ${outcome.detail}`;
  return { kind: 'not_sent', detail, because: 'unreachable' };
}

function isAlarm(outcome: Outcome): boolean {
  return outcome.kind === 'unknown' && outcome.alarm === true;
}

/** Reads the outcome of a payment from its order. */
export function fromOrder(order: Order, asked: Asked): Outcome {
  const found = unitOf(order, asked);
  if ('kind' in found) return found;
  const { captures } = found.unit.payments;
  const captured = captures.filter(({ status }) => status !== 'DECLINED' && status !== 'FAILED');
  if (captured.length > 1) {
    return alarmingOutcome(
      `charged twice: the order has the captures ${captured.map(({ id }) => id).join(', ')}`,
    );
  }
  const capture = captured[0] ?? captures.at(-1);
  if (capture) return fromCapture(capture, order, asked);

  const reported = {
    providerData: providerDataOf(order, order.raw, asked.shownAs),
    reference: String(order.id),
  };
  const difference = differingMoney(found.unit.amount, asked.money);
  if (difference !== undefined) return answeredAboutAnother(difference);
  switch (order.status) {
    case 'CREATED':
    case 'SAVED':
    case 'PAYER_ACTION_REQUIRED': {
      const page = payerLinkOf(order);
      if (page === undefined) break;
      return { kind: 'awaits_payer', ...reported, show: { page } };
    }
    case 'APPROVED':
      return { kind: 'to_complete', ...reported };
    case 'VOIDED':
      return { kind: 'expired', ...reported };
  }
  return contradiction(reported);
}

/**
 * Adds a payment's captured and refunded totals, taken from the refunds in its order. These may include a reversal,
 * which PayPal reports as a refund. A refunded capture without a listed refund is an alarm.
 */
export function withTotals(outcome: Outcome, order: Order, { money }: Asked): Outcome {
  if (outcome.kind !== 'approved') return outcome;
  const { captures = [], refunds = [] } = order.purchase_units[0]?.payments ?? {};
  const isRefunded = captures.some(({ status }) => REFUNDED.has(status));
  const made = refunds.filter(({ status }) => status === 'COMPLETED');
  const movements = made.map(({ id, amount }): Movement | undefined =>
    id !== undefined && amount?.currency === money.currency
      ? { type: 'REFUND', providerPaymentId: id, minorUnits: amount.minorUnits }
      : undefined,
  );
  if (!movements.every((one) => one !== undefined) || (isRefunded && refunds.length === 0)) {
    const alarm = 'alarm: the payment was refunded, but its order does not say how much';
    return { ...outcome, providerData: { ...outcome.providerData, responseMessage: alarm }, alarm: true };
  }
  const refunded = movements.reduce((sum, one) => sum + one.minorUnits, 0n);
  const failed = refunds.filter(({ status }) => status === 'FAILED' || status === 'CANCELLED');
  const failedRefunds = failed.map(({ id }) => id);
  const totals = {
    captured: money.minorUnits,
    refunded,
    mayCountDisputes: true,
    movements,
    failedRefunds,
  } as const;
  return { ...outcome, totals };
}

const REFUNDED: ReadonlySet<string> = new Set(['REFUNDED', 'PARTIALLY_REFUNDED']);

/** Returns an order's single purchase unit if it matches the request, or else the outcome of a mismatch. */
export function unitOf(order: Order, asked: Asked): { readonly unit: Unit } | Outcome {
  const { id, intent, purchase_units: units } = order;
  if (id === undefined || (asked.orderId !== undefined && id !== asked.orderId)) {
    return answeredAboutAnother('id');
  }
  if (intent !== undefined && intent !== 'CAPTURE') return answeredAboutAnother('intent');
  const [unit] = units;
  if (!unit || units.length !== 1) return answeredAboutAnother('purchase_units');
  return isAbout(unit, asked.transactionId) || capturesAreAbout(unit, asked.transactionId)
    ? { unit }
    : answeredAboutAnother('custom_id');
}

/** PayPal's corrections: a capture or a refund may fail after it was completed. */
export const CORRECTIONS: Corrections = {
  payment: { DECLINED: ['COMPLETED'], FAILED: ['COMPLETED'], COMPLETED: ['DECLINED', 'FAILED'] },
  capture: {},
  refund: { FAILED: ['COMPLETED'], CANCELLED: ['COMPLETED'], COMPLETED: ['FAILED', 'CANCELLED'] },
};

/** Reads the outcome of a refund from its object. */
export function fromRefund(refund: Transaction, asked: Omit<Asked, 'orderId'>): Outcome {
  const { transactionId, money, shownAs } = asked;
  if (refund.id === undefined) return answeredAboutAnother('id');
  if (namesAnother(refund, transactionId)) return answeredAboutAnother('custom_id');
  const reported = {
    providerData: providerDataOf(refund, refund.raw, shownAs),
    ...{ reference: refund.id, providerPaymentId: refund.id },
  };
  const corrects = correcting(CORRECTIONS.refund, refund.status);
  switch (refund.status) {
    case 'COMPLETED': {
      const approved = approvedOutcome({ ...reported, ...corrects });
      return withMovedMoney(approved, differingMoney(refund.amount, money), refund.amount);
    }
    case 'PENDING':
      return { kind: 'pending', ...reported };
    case 'FAILED':
    case 'CANCELLED':
      return { kind: 'declined', ...reported, ...corrects, ...SOFT_DECLINE };
    default:
      return contradiction(reported);
  }
}

/** Returns true if a PayPal object contains our transaction's id and no other. */
export function isAbout(object: Names, transactionId: string): boolean {
  return namesOf(object).length > 0 && !namesAnother(object, transactionId);
}

/** Reads the outcome of a payment from a capture. @param order the object that contains it. */
export function fromCapture(
  capture: Transaction,
  order: Pick<Order, 'id' | 'raw'>,
  asked: Omit<Asked, 'orderId'>,
): Outcome {
  if (capture.id === undefined) return answeredAboutAnother('capture');
  if (namesAnother(capture, asked.transactionId)) return answeredAboutAnother('custom_id');
  const difference = differingMoney(capture.amount, asked.money);
  if (difference !== undefined) return answeredAboutAnother(difference);
  const reported = {
    providerData: providerDataOf(capture, order.raw, asked.shownAs),
    reference: `${order.id}/${capture.id}`,
    providerPaymentId: capture.id,
  };
  const corrects = correcting(CORRECTIONS.payment, capture.status);
  switch (capture.status) {
    case 'COMPLETED':
    // The money was taken, even if it was refunded later.
    case 'PARTIALLY_REFUNDED':
    case 'REFUNDED':
      return approvedOutcome({ ...reported, ...corrects });
    case 'PENDING':
      return { kind: 'pending', ...reported };
    case 'DECLINED':
    case 'FAILED':
      return {
        kind: 'declined',
        ...reported,
        ...corrects,
        ...declineByProcessor(capture.processor_response),
      };
    default:
      return contradiction(reported);
  }
}

function contradiction(reported: {
  readonly providerData: ProviderData;
  readonly reference: string;
}): Outcome {
  return { kind: 'unknown', detail: 'the response contradicts itself', ...reported };
}

/** Returns true if the captures are about our transaction: the response to a capture may contain our ids only there. */
function capturesAreAbout(unit: Unit, transactionId: string): boolean {
  const { captures } = unit.payments;
  return (
    !namesAnother(unit, transactionId) &&
    captures.length > 0 &&
    captures.every((capture) => isAbout(capture, transactionId))
  );
}

function namesAnother(object: Names, transactionId: string): boolean {
  return namesOf(object).some((name) => name !== transactionId);
}

/** The fields that carry our transaction's id. */
type Names = Pick<Unit, 'reference_id' | 'custom_id' | 'invoice_id'>;

function namesOf({ reference_id, custom_id, invoice_id }: Names): readonly unknown[] {
  return [reference_id, custom_id, invoice_id].filter((name) => name !== undefined);
}
