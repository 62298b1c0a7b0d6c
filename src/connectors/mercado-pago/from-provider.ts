import { create, type JsonObject, type JsonValue } from '@bufbuild/protobuf';
import { type ProviderData, ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import type { HttpResult } from '#src/connectors/http-client.ts';
import type { Outcome, Totals } from '#src/connectors/outcome.ts';
import {
  answeredAboutAnother,
  approvedOutcome,
  fromResult,
  isHttpUrl,
  isJsonObject,
  isTextLike,
  objectsAt,
  outcomeOfStatus,
  readJsonObject,
  readMoney,
  textOf,
  unknownOutcome,
} from '#src/connectors/provider-answer.ts';
import type { ShownAs } from '#src/connectors/provider-client.ts';
import type { Money } from '#src/money.ts';
import { differingAmount } from './money.ts';
import { formatReference, PREFERENCE_ID } from './reference.ts';

/** Values that an answer must agree with. */
export type Asked = {
  readonly transactionId: string;
  readonly money: Money;
  readonly shownAs: ShownAs;
};

/** Matches an id of a payment or a refund, which is a number in some answers and a text in others. */
const NUMERIC_ID = /^\d{1,20}$/;
/** Statuses that refuse all of the connection's requests. */
const CONNECTIONS_OWN: ReadonlySet<number> = new Set([401, 403, 429]);
/** Fields that the record does not show: the payer's own data. */
const NOT_SHOWN: ReadonlySet<string> = new Set(['payer', 'card', 'additional_info', 'back_urls', 'metadata']);

/**
 * Reads the result of creating a preference. That moves no money, and nobody can pay a preference whose address they
 * were never given: whatever became of the request, without a valid answer the attempt counts as not sent.
 */
export function fromCreation(result: HttpResult, asked: Asked): Outcome {
  if (result.kind === 'not_sent') return result;
  if (result.kind === 'unknown') return notMade(result.detail, 'unreachable');
  const { status, body } = result;
  const preference = readJsonObject(body);
  if (!preference || status < 200 || status > 299) {
    const isOurs = status >= 400 && status < 500 && !CONNECTIONS_OWN.has(status);
    if (!isOurs) return notMade(`the answer: ${status}`, 'unreachable');
    return { ...notMade(`the answer: ${status}`, 'turned_away'), refused: refusedFieldOf(preference ?? {}) };
  }
  return fromPreference(preference, asked) ?? notMade('the answer is not a preference', 'unreachable');
}

/**
 * Returns a redirect to the preference's address.
 *
 * @returns undefined if it has none.
 */
export function fromPreference(preference: JsonObject, asked: Asked): Outcome | undefined {
  const { id, init_point, external_reference, collector_id, items } = preference;
  if (!isTextLike(id, PREFERENCE_ID)) return undefined;
  if (external_reference !== asked.transactionId) return answeredAboutAnother('external_reference');
  if (isAnotherAccount(collector_id, asked)) return answeredAboutAnother('collector_id');
  const difference = differingTotal(items, asked.money);
  if (difference !== undefined) return answeredAboutAnother(difference);
  if (!isHttpUrl(init_point)) return undefined;
  const reported = { providerData: providerDataOf(preference, asked), reference: id };
  return { kind: 'redirect', ...reported, redirectUrl: init_point };
}

/** Reads the result of a refund's request; for a refund that is read from a list, `result` is the list's. */
export function fromRefundResult(result: HttpResult, paymentId: string, asked: Asked): Outcome {
  return fromResult(result, (body, { status }) => {
    // The rate limit may have been reached after the refund was made.
    if (status === 429) return unknownOutcome(`the provider's answer: ${status}`);
    const refusal = outcomeOfStatus(status, isErrorBody(body, status), refusedFieldOf(body));
    return refusal ?? fromRefund(body, paymentId, asked);
  });
}

/** Reads the outcome of a refund from its object. */
export function fromRefund(refund: JsonObject, paymentId: string, asked: Asked): Outcome {
  const id = idOf(refund.id);
  if (id === undefined) return unknownOutcome('the answer is not a refund');
  if (idOf(refund.payment_id) !== paymentId) return answeredAboutAnother('payment_id');
  // A refund contains no currency: it is its payment's.
  const difference = differingAmount(refund.amount, asked.money.currency, asked.money);
  if (difference !== undefined) return answeredAboutAnother(difference);
  const providerData = providerDataOf(refund, asked);
  const reported = { providerData, reference: id };
  switch (refund.status) {
    case 'approved':
      return approvedOutcome(reported);
    case 'in_process':
      return { kind: 'pending', ...reported };
    case 'rejected':
    case 'cancelled':
      return { kind: 'declined', ...reported, iso8583Code: '05' };
    default:
      return unknownOutcome('the refund has a status that is not known', providerData);
  }
}

/** Sums up the refunds of a payment; undefined if one cannot be read. */
export function totalsOf(
  refunds: readonly JsonObject[],
  paymentId: string,
  { money: { minorUnits: captured, currency } }: Asked,
): Totals | undefined {
  const made = refunds.filter(({ status }) => status === 'approved');
  // A refund contains no currency: it is its payment's.
  const sums = made.map(({ amount, payment_id: id }) =>
    idOf(id) === paymentId ? readMoney(amount, currency, 'decimal')?.minorUnits : undefined,
  );
  if (!sums.every((sum) => sum !== undefined)) return undefined;
  return { captured, refunded: sums.reduce((all, sum) => all + sum, 0n) };
}

/** Makes the record's provider data from a payment, a preference or a refund. */
export function providerDataOf(object: JsonObject, { shownAs }: Asked, responseMessage = ''): ProviderData {
  return create(ProviderDataSchema, {
    id: shownAs.providerId,
    transactionId: typeof object.id === 'string' ? object.id : (idOf(object.id) ?? ''),
    accountId: shownAs.accountId ?? idOf(object.collector_id) ?? '',
    status: textOf(object.status),
    statusDetail: textOf(object.status_detail),
    responseCode: textOf(object.status_detail),
    responseMessage,
    rawResponse: Object.fromEntries(Object.entries(object).filter(([name]) => !NOT_SHOWN.has(name))),
  });
}

/** Returns the reference for a payment's outcome. */
export function referenceTo(preferenceId: string | undefined, payment: JsonObject): string {
  return formatReference({ preferenceId, paymentId: idOf(payment.id) });
}

/** Returns an id, which is a number in some answers and a text in others. */
export function idOf(value: JsonValue | undefined): string | undefined {
  const text = Number.isSafeInteger(value) ? String(value) : textOf(value);
  return NUMERIC_ID.test(text) ? text : undefined;
}

/** Returns true if an answer is about another account than the connection's, if its settings name one. */
export function isAnotherAccount(collectorId: JsonValue | undefined, { shownAs }: Pick<Asked, 'shownAs'>) {
  return (
    shownAs.accountId !== undefined && collectorId !== undefined && idOf(collectorId) !== shownAs.accountId
  );
}

/** Returns true if a body is an error in the provider's own form. */
export function isErrorBody(body: JsonObject, status: number): boolean {
  return typeof body.message === 'string' && body.status === status;
}

/** Matches names of fields that we send. */
const FIELD =
  /\b(payer\.(?:email|phone|identification|address)|statement_descriptor|unit_price|quantity|currency_id|items|title|category_id|external_reference|back_urls?|auto_return|notification_url|expiration_date_to|date_of_expiration|binary_mode|excluded_payment_types|metadata|amount)\b/;

/** Returns the field that an error names in its texts, which may quote values as well; '' if it names none. */
export function refusedFieldOf(error: JsonObject): string {
  const causes = objectsAt(error, 'cause').map(({ description }) => textOf(description));
  return FIELD.exec([textOf(error.message), ...causes].join('\n'))?.[1] ?? '';
}

/** Compares the sum of a preference's items with the requested money. */
function differingTotal(items: JsonValue | undefined, money: Money): 'amount' | 'currency' | undefined {
  if (!Array.isArray(items)) return 'amount';
  let sum = 0;
  for (const item of items) {
    if (!isJsonObject(item) || typeof item.unit_price !== 'number' || typeof item.quantity !== 'number') {
      return 'amount';
    }
    if (item.currency_id !== money.currency) return 'currency';
    sum += item.unit_price * item.quantity;
  }
  // Rounded to the cent, the smallest unit of the provider's currencies: sums of JSON numbers are not exact.
  return differingAmount(Number(sum.toFixed(2)), money.currency, money);
}

function notMade(
  detail: string,
  because: 'unreachable' | 'turned_away',
): Extract<Outcome, { kind: 'not_sent' }> {
  return { kind: 'not_sent', detail: `no preference that anybody could pay: ${detail}`, because };
}
