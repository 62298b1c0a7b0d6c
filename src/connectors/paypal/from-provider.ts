import type { JsonObject } from '@bufbuild/protobuf';
import type { ProviderData } from '#gen/payments/v1/payment_pb.js';
import type { HttpResult } from '#src/connectors/http-client.ts';
import type { Outcome } from '#src/connectors/outcome.ts';
import {
  alarmingOutcome,
  answeredAboutAnother,
  approvedOutcome,
  differingMoney,
  fromResult,
  isHttpUrl,
  isTextLike,
  objectAt,
  objectsAt,
  outcomeOfStatus,
  readMoney,
  textOf,
  unknownOutcome,
} from '#src/connectors/provider-answer.ts';
import type { ShownAs } from '#src/connectors/provider-client.ts';
import type { Money } from '#src/money.ts';
import { declineOfProcessorCode, factOfIssue } from './decline-codes.ts';
import { errorDataOf, fieldOf, issueOf, providerDataOf } from './provider-data.ts';

/** Values that an answer must agree with. */
export type Asked = {
  readonly transactionId: string;
  readonly money: Money;
  /** undefined until PayPal has reported one. */
  readonly orderId: string | undefined;
  readonly shownAs: ShownAs;
};

/** Matches PayPal's ids of orders, captures and refunds. */
export const PAYPAL_ID = /^[A-Z0-9]{8,36}$/;
/** The links for sending a payer to an order; which of them is present depends on how the order was created. */
const PAYER_LINKS: ReadonlySet<string> = new Set(['payer-action', 'approve']);

/**
 * Reads an HTTP result: `read` reads the created object; the issue of a refusal says if the payment was declined or the
 * request merely refused.
 */
export function fromAnswer(
  result: HttpResult,
  shownAs: ShownAs,
  read: (body: JsonObject) => Outcome,
): Outcome {
  return fromResult(result, (body, { status, headers }) => {
    const issue = issueOf(body);
    const refusal = outcomeOfStatus(status, isErrorBody(body), fieldOf(issue) || textOf(issue.issue));
    if (!refusal) return read(body);
    if (refusal.kind !== 'not_sent') {
      return unknownOutcome(`the provider's answer: ${status}${debugId(headers)}`);
    }
    return fromIssue(body, shownAs) ?? { ...refusal, detail: `${refusal.detail}${debugId(headers)}` };
  });
}

/**
 * Reads the result of creating an order. A lost answer loses nothing here: no money moves without the payer's approval,
 * and nobody was sent to give it. An answer that contradicts the request is still an alarm.
 */
export function fromCreation(result: HttpResult, asked: Asked): Outcome {
  const outcome = fromAnswer(result, asked.shownAs, (order) => {
    const created = fromOrder(order, asked);
    if (created.kind === 'redirect' || isAlarm(created)) return created;
    return alarmingOutcome('the new order does not wait for its payer');
  });
  if (outcome.kind !== 'unknown' || isAlarm(outcome)) return outcome;
  const detail = `no money can move by what was sent: ${outcome.detail}`;
  return { kind: 'not_sent', detail, because: 'unreachable' };
}

function isAlarm(outcome: Outcome): boolean {
  return outcome.kind === 'unknown' && outcome.alarm === true;
}

/** Returns true if a body is an error in PayPal's own form, or in that of OAuth. */
export function isErrorBody(body: JsonObject): boolean {
  return (
    (typeof body.name === 'string' && typeof body.message === 'string') ||
    (typeof body.error === 'string' && typeof body.error_description === 'string')
  );
}

/** Reads the outcome of a payment from its order. */
export function fromOrder(order: JsonObject, asked: Asked): Outcome {
  const unit = unitOf(order, asked);
  if ('kind' in unit) return unit;
  const captures = objectsAt(objectAt(unit.unit, 'payments'), 'captures');
  const captured = captures.filter(({ status }) => status !== 'DECLINED' && status !== 'FAILED');
  if (captured.length > 1) return alarmingOutcome('the order was captured more than once');
  const capture = captured[0] ?? captures.at(-1);
  if (capture) return fromCapture(capture, order, asked);

  const reported = {
    providerData: providerDataOf(order, order, asked.shownAs),
    reference: String(order.id),
  };
  const difference = differenceOf(unit.unit, asked.money);
  if (difference !== undefined) return answeredAboutAnother(difference);
  switch (order.status) {
    case 'CREATED':
    case 'SAVED':
    case 'PAYER_ACTION_REQUIRED': {
      const redirectUrl = payerLinkOf(order);
      if (redirectUrl === undefined) break;
      return { kind: 'redirect', ...reported, redirectUrl };
    }
    case 'APPROVED':
      return { kind: 'to_complete', ...reported };
    case 'VOIDED':
      return { kind: 'expired', ...reported };
  }
  return contradiction(reported);
}

/**
 * Adds what was captured and refunded of a payment, by the refunds that its order lists: perhaps a reversal, too, which
 * PayPal tells of as a refund. That a capture was refunded without any being listed is an alarm.
 */
export function withTotals(outcome: Outcome, order: JsonObject, { money }: Asked): Outcome {
  if (outcome.kind !== 'approved') return outcome;
  const payments = objectAt(objectsAt(order, 'purchase_units')[0], 'payments');
  const refunds = objectsAt(payments, 'refunds');
  const isRefunded = objectsAt(payments, 'captures').some(({ status }) => REFUNDED.has(textOf(status)));
  const made = refunds.filter(({ status }) => status === 'COMPLETED').map(amountOf);
  const isTold = made.every((one) => one?.currency === money.currency) && (refunds.length > 0 || !isRefunded);
  if (!isTold) {
    const alarm = 'alarm: the payment was refunded, and its order does not tell how much';
    return { ...outcome, providerData: { ...outcome.providerData, responseMessage: alarm }, alarm: true };
  }
  const refunded = made.reduce((sum, one) => sum + (one?.minorUnits ?? 0n), 0n);
  return { ...outcome, totals: { captured: money.minorUnits, refunded, mayCountDisputes: true } };
}

const REFUNDED: ReadonlySet<string> = new Set(['REFUNDED', 'PARTIALLY_REFUNDED']);

/** Returns an order's single purchase unit if it is the one asked about; else the outcome. */
export function unitOf(order: JsonObject, asked: Asked): { readonly unit: JsonObject } | Outcome {
  const { id, intent } = order;
  if (!isTextLike(id, PAYPAL_ID) || (asked.orderId !== undefined && id !== asked.orderId)) {
    return answeredAboutAnother('id');
  }
  if (intent !== undefined && intent !== 'CAPTURE') return answeredAboutAnother('intent');
  const units = objectsAt(order, 'purchase_units');
  const [unit] = units;
  if (!unit || units.length !== 1) return answeredAboutAnother('purchase_units');
  return isAbout(unit, asked.transactionId) || capturesAreAbout(unit, asked.transactionId)
    ? { unit }
    : answeredAboutAnother('custom_id');
}

/** Reads the outcome of a refund from its object. */
export function fromRefund(refund: JsonObject, asked: Omit<Asked, 'orderId'>): Outcome {
  const { transactionId, money, shownAs } = asked;
  if (!isTextLike(refund.id, PAYPAL_ID)) return answeredAboutAnother('id');
  if (namesAnother(refund, transactionId)) return answeredAboutAnother('custom_id');
  const difference = differenceOf(refund, money);
  if (difference !== undefined) return answeredAboutAnother(difference);
  const reported = { providerData: providerDataOf(refund, refund, shownAs), reference: refund.id };
  switch (refund.status) {
    case 'COMPLETED':
      return approvedOutcome(reported);
    case 'PENDING':
      return { kind: 'pending', ...reported };
    case 'FAILED':
    case 'CANCELLED':
      return { kind: 'declined', ...reported, iso8583Code: '05' };
    default:
      return contradiction(reported);
  }
}

/** Returns true if an object of PayPal's contains our transaction's id, and no other. */
export function isAbout(object: JsonObject, transactionId: string): boolean {
  return namesOf(object).length > 0 && !namesAnother(object, transactionId);
}

function fromCapture(capture: JsonObject, order: JsonObject, asked: Asked): Outcome {
  if (!isTextLike(capture.id, PAYPAL_ID)) return answeredAboutAnother('capture');
  if (namesAnother(capture, asked.transactionId)) return answeredAboutAnother('custom_id');
  const difference = differenceOf(capture, asked.money);
  if (difference !== undefined) return answeredAboutAnother(difference);
  const reported = {
    providerData: providerDataOf(capture, order, asked.shownAs),
    reference: `${textOf(order.id)}/${capture.id}`,
  };
  switch (capture.status) {
    case 'COMPLETED':
    // Money that was given back since then had been taken before.
    case 'PARTIALLY_REFUNDED':
    case 'REFUNDED':
      return approvedOutcome(reported);
    case 'PENDING':
      return { kind: 'pending', ...reported };
    case 'DECLINED':
    case 'FAILED': {
      const code = textOf(objectAt(capture, 'processor_response').response_code);
      return { kind: 'declined', ...reported, ...declineOfProcessorCode(code) };
    }
    default:
      return contradiction(reported);
  }
}

function contradiction(reported: {
  readonly providerData: ProviderData;
  readonly reference: string;
}): Outcome {
  return { kind: 'unknown', detail: 'the answer contradicts itself', ...reported };
}

/** Reads the issue of a refusal, which may say more than the refusal itself. */
function fromIssue(body: JsonObject, shownAs: ShownAs): Outcome | undefined {
  const issue = issueOf(body);
  const fact = factOfIssue(textOf(issue.issue));
  if (fact === undefined) return undefined;
  const providerData = errorDataOf(body, shownAs);
  if (typeof fact === 'object') return { kind: 'declined', providerData, ...fact };
  if (fact === 'pending') return { kind: 'pending', providerData };
  const redirectUrl = fact === 'redirect' ? payerLinkOf(body) : undefined;
  if (redirectUrl !== undefined) return { kind: 'redirect', providerData, redirectUrl };
  if (issue.issue === 'DUPLICATE_INVOICE_ID') {
    return alarmingOutcome('the payment was paid by another order', providerData);
  }
  return unknownOutcome(`the provider has to be asked: ${textOf(issue.issue)}`, providerData);
}

function payerLinkOf(body: JsonObject): string | undefined {
  const link = objectsAt(body, 'links').find(({ rel }) => PAYER_LINKS.has(textOf(rel)));
  return isHttpUrl(link?.href) ? link.href : undefined;
}

function differenceOf(object: JsonObject, money: Money): string | undefined {
  return differingMoney(amountOf(object), money);
}

function amountOf(object: JsonObject): Money | undefined {
  const { value, currency_code: currency } = objectAt(object, 'amount');
  return readMoney(value, currency, 'decimal');
}

/** Returns true if the captures are about our transaction: an answer to a capture may contain our ids only there. */
function capturesAreAbout(unit: JsonObject, transactionId: string): boolean {
  const captures = objectsAt(objectAt(unit, 'payments'), 'captures');
  return (
    !namesAnother(unit, transactionId) &&
    captures.length > 0 &&
    captures.every((capture) => isAbout(capture, transactionId))
  );
}

function namesAnother(object: JsonObject, transactionId: string): boolean {
  return namesOf(object).some((name) => name !== transactionId);
}

/** Returns the fields that we filled with our transaction's id. */
function namesOf({ reference_id, custom_id, invoice_id }: JsonObject): readonly unknown[] {
  return [reference_id, custom_id, invoice_id].filter((name) => name !== undefined);
}

function debugId(headers: Extract<HttpResult, { kind: 'answer' }>['headers']): string {
  const id = headers['paypal-debug-id'];
  return id === undefined ? '' : ` (debug id ${id})`;
}
