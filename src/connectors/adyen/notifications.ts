import { createHash } from 'node:crypto';
import type { Secret } from '#src/secret.ts';
import {
  alarmingOutcome,
  approvedOutcome,
  asIs,
  correcting,
  fields,
  isJsonObject,
  isTextLike,
  isUuid,
  readJsonObject,
  textOf,
} from '../kit/provider-answer.ts';
import { forged, isSignedBy } from '../kit/provider-signature.ts';
import { SOFT_DECLINE } from '../kit/refusal.ts';
import type {
  Corrections,
  NotificationReading,
  NotificationSubject,
  OperationKind,
  RawNotification,
  SignedOutcome,
} from '../port/connector.ts';
import type { Outcome } from '../port/outcome.ts';
import { type Item, namesOf, PSP_REFERENCE, providerDataOf, readItem, type ShownAs } from './answers.ts';
import { DISPUTE_EVENTS, disputeOf } from './disputes.ts';
import { isLocalAtAdyen } from './methods.ts';
import { fromAdyenAmount } from './money.ts';
import { withCard } from './reported-card.ts';

/** Response body that Adyen requires in order to count a notification as accepted. */
const ACKNOWLEDGEMENT = '[accepted]';
const MAX_ITEMS = 100;
const EVENT_CODE = /^[A-Z][A-Z0-9_]{1,99}$/;
const OPERATION_REFERENCE = /^(capture|cancel|refund)-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;
const CANCELED_OR_REFUNDED =
  'the payment was canceled or refunded at Adyen; the signed fields do not say which.';
const NOT_TAKEN = 'the purchase was approved, but its capture failed: no money was taken.';

type Ended = 'approved' | 'declined' | 'expired';
/** Meaning of an event: its subject, and the outcome if it reports a success or a failure. */
type Meaning = { readonly of: 'payment' | OperationKind; readonly success?: Ended; readonly failure?: Ended };

const done = (of: Meaning['of']): Meaning => ({ of, success: 'approved', failure: 'declined' });
const undone = (of: Meaning['of']): Meaning => ({ of, success: 'declined' });

const AUTHORISATION = 'AUTHORISATION';
const CANCELLATION = 'CANCELLATION';
const CAPTURE = 'CAPTURE';
const CAPTURE_FAILED = 'CAPTURE_FAILED';
const CANCEL_OR_REFUND = 'CANCEL_OR_REFUND';
const REFUND = 'REFUND';
const REFUND_FAILED = 'REFUND_FAILED';
const REFUNDED_REVERSED = 'REFUNDED_REVERSED';
const TECHNICAL_CANCEL = 'TECHNICAL_CANCEL';

const MEANINGS: Readonly<Record<string, Meaning>> = {
  [AUTHORISATION]: done('payment'),
  [CAPTURE]: done('capture'),
  [CANCELLATION]: done('cancel'),
  [REFUND]: done('refund'),
  [CAPTURE_FAILED]: undone('capture'),
  [REFUND_FAILED]: undone('refund'),
  [REFUNDED_REVERSED]: undone('refund'),
  // Adyen found the payment by our reference and canceled it. A failure to find it proves nothing: the payment may
  // still arrive.
  [TECHNICAL_CANCEL]: undone('payment'),
  OFFER_CLOSED: { of: 'payment', success: 'expired' },
  // The uncaptured rest of the authorization has expired.
  EXPIRE: { of: 'payment', success: 'expired' },
};

/**
 * Adyen's corrections. An event that reports success corrects the listed ones: a capture or a refund that failed may
 * be made again by Adyen itself, and fail again. Answers to a payment show their result code.
 */
export const CORRECTIONS: Corrections = {
  payment: {
    [AUTHORISATION]: [
      ...[AUTHORISATION, 'Refused', 'Cancelled', 'Error'],
      ...['RedirectShopper', 'ChallengeShopper', 'IdentifyShopper'],
    ],
  },
  capture: { [CAPTURE]: [CAPTURE, CAPTURE_FAILED], [CAPTURE_FAILED]: [CAPTURE] },
  refund: {
    [REFUND]: [REFUND, REFUND_FAILED, REFUNDED_REVERSED],
    [REFUND_FAILED]: [REFUND],
    [REFUNDED_REVERSED]: [REFUND],
  },
};

/** The rows of all corrections; no event is about two things. */
const CORRECTED: Readonly<Record<string, readonly string[]>> = {
  ...CORRECTIONS.payment,
  ...CORRECTIONS.capture,
  ...CORRECTIONS.refund,
};

/** Time by which Adyen's clock may be ahead of ours. */
const MAX_AHEAD_MS = 5 * 60_000;

/**
 * Reads notifications that Adyen posted to our endpoint; pure. Adyen has no look-up, so only the signed fields decide
 * what happened. The signature covers no time. The event's date therefore only orders genuine reports about the same
 * transaction, and tells a repeated event from one that was delivered again.
 */
export function readNotifications(
  { body }: RawNotification,
  hmacKeys: readonly Secret[],
  shownAs: ShownAs,
  nowMs: number,
): NotificationReading {
  const list = readJsonObject(body)?.notificationItems;
  const all = (Array.isArray(list) ? list : []).map((entry) => readEntry(entry).NotificationRequestItem);
  const items = all.filter((item) => !isIgnoredUnsigned(item));
  if (all.length === 0 || all.length > MAX_ITEMS || !items.every((item) => isSigned(item, hmacKeys))) {
    return forged('the signature is missing or wrong');
  }
  const subjects = items.flatMap((item) => subjectsOf(item, shownAs).map((one) => dated(one, item, nowMs)));
  if (subjects.length === 0) return { kind: 'ignored', acknowledgement: ACKNOWLEDGEMENT };
  const keys = items.map((item) => [...signedFields(item), ...repeatOf(item)].join(':')).join('\n');
  const deduplicationKey = createHash('sha256').update(keys).digest('base64url');
  return { kind: 'about', deduplicationKey, subjects, acknowledgement: ACKNOWLEDGEMENT };
}

/** Returns the part of an event's deduplication key that tells its repetitions apart, if the event may be repeated. */
function repeatOf({ eventCode, eventDate }: Item): readonly string[] {
  // A dispute has one reference, of which an addition may come once at each stage.
  const mayRepeat = Object.hasOwn(CORRECTED, eventCode) || DISPUTE_EVENTS[eventCode]?.isAddition;
  return mayRepeat && eventDate ? [eventDate.toISOString()] : [];
}

/** Adds the event's date to a subject. A date ahead of our clock is ignored, since it would outlast all later events. */
function dated(subject: NotificationSubject, { eventDate: at }: Item, nowMs: number): NotificationSubject {
  const isPast = at && at.getTime() <= nowMs + MAX_AHEAD_MS;
  return subject.signed && isPast ? { ...subject, signed: { ...subject.signed, at } } : subject;
}

const readEntry = fields({ NotificationRequestItem: readItem });
const readAmount = fields({ value: asIs, currency: textOf });

/** Returns the signed fields in the order of the signature. */
function signedFields(item: Item): readonly string[] {
  const { pspReference, originalReference, merchantAccountCode, merchantReference, eventCode, success } =
    item;
  const { value, currency } = readAmount(item.amount);
  return [
    ...[pspReference, originalReference, merchantAccountCode, merchantReference],
    ...[typeof value === 'number' ? String(value) : '', currency, eventCode, success],
  ];
}

/**
 * Returns true for an unsigned item whose event is ignored, such as REPORT_AVAILABLE: Adyen does not sign all events, and
 * holds back every later notification until it is accepted.
 */
function isIgnoredUnsigned({ eventCode, raw }: Item): boolean {
  const isUsed = [MEANINGS, DISPUTE_EVENTS].some((events) => Object.hasOwn(events, eventCode));
  const isIgnored = EVENT_CODE.test(eventCode) && !isUsed && eventCode !== CANCEL_OR_REFUND;
  const { additionalData = null } = raw;
  return isIgnored && !(isJsonObject(additionalData) && 'hmacSignature' in additionalData);
}

function isSigned(item: Item, hmacKeys: readonly Secret[]): boolean {
  const { hmacSignature: given } = item.additionalData;
  if (given === undefined) return false;
  return isSignedBy(hmacKeys, [signedFields(item).join(':')], [Buffer.from(given, 'base64')], 'hex');
}

/** Returns the subjects of a genuine item; none if the item does not concern our payments. */
function subjectsOf(item: Item, shownAs: ShownAs): readonly NotificationSubject[] {
  // A colon in a field would make the signature ambiguous; no field that we send contains a colon.
  if (signedFields(item).some((field) => field.includes(':'))) return [];
  if (item.merchantAccountCode !== shownAs.merchantAccount) return [];
  const { pspReference, originalReference, merchantReference, eventCode } = item;
  const paymentReference = originalReference || pspReference;
  const payment = {
    ...(isUuid(merchantReference) && { transactionId: merchantReference }),
    ...(isTextLike(paymentReference, PSP_REFERENCE) && { providerPaymentId: paymentReference }),
  };
  const dispute = disputeOf(item, shownAs.environment);
  if (dispute) {
    const isNamed = 'transactionId' in payment || 'providerPaymentId' in payment;
    return isNamed ? [{ ...payment, dispute }] : [];
  }

  if (eventCode === CANCEL_OR_REFUND) {
    const isDone = item.success === 'true' && 'providerPaymentId' in payment;
    return isDone ? [{ ...payment, ...alarm(item, CANCELED_OR_REFUNDED) }] : [];
  }

  const meaning = MEANINGS[eventCode];
  const ended = item.success === 'true' ? meaning?.success : (expiryOf(item) ?? meaning?.failure);
  const isTold = item.success === 'true' || item.success === 'false';
  if (!meaning || !ended || !isTold || !isTextLike(pspReference, PSP_REFERENCE)) return [];
  if (meaning.of === 'payment') {
    // Other software on the same account uses its own references.
    const signedOutcome = signed(item, ended, payment.providerPaymentId, shownAs);
    return payment.transactionId === undefined ? [] : [{ ...payment, ...signedOutcome }];
  }
  const [, kind, transactionId] = OPERATION_REFERENCE.exec(merchantReference) ?? [];
  const operation = {
    ...(kind === meaning.of && transactionId && { transactionId }),
    providerPaymentId: pspReference,
    ...signed(item, ended, pspReference, shownAs),
  };
  const ofPayment = kind === undefined ? paymentAfter(item, payment, operation, shownAs) : undefined;
  return ofPayment ? [operation, ofPayment] : [operation];
}

/**
 * Returns 'expired' for the failure of a local method whose reason is its expiry. Neither field is signed, but either way
 * the payer has not paid. A card's reason says that the card has expired.
 */
function expiryOf({ eventCode, paymentMethod, reason }: Item): 'expired' | undefined {
  const isExpired = eventCode === AUTHORISATION && isLocalAtAdyen(paymentMethod) && /expired/i.test(reason);
  return isExpired ? 'expired' : undefined;
}

/**
 * Builds the payment's subject for an operation that was not requested through us and therefore has the payment's
 * reference: a failed capture by Adyen itself, or an action in the Customer Area, which may also have its own
 * reference. Because the operation's own reference may belong to one of our operations, the operation is a separate
 * subject.
 */
function paymentAfter(
  item: Item,
  payment: NotificationSubject,
  { signed: reported }: NotificationSubject,
  shownAs: ShownAs,
): NotificationSubject | undefined {
  const { eventCode, originalReference } = item;
  const isOwn = payment.transactionId !== undefined;
  if (eventCode === CAPTURE_FAILED && isOwn)
    return { ...payment, ...alarm(item, NOT_TAKEN, { ofPurchase: true }) };
  if (item.success !== 'true') return undefined;
  const paid = isTextLike(originalReference, PSP_REFERENCE) && { paidReference: originalReference };
  if (eventCode === CANCELLATION && isOwn) {
    const { signed: end } = signed(item, 'expired', payment.providerPaymentId, shownAs);
    return { ...payment, ...(end && { signed: { ...end, ...paid } }) };
  }
  const isMade = eventCode === CAPTURE || eventCode === REFUND;
  if (!isMade || !reported || !(isOwn || originalReference)) return undefined;
  return { ...payment, signed: { ...reported, ...paid, operation: eventCode } };
}

/**
 * Builds an alarm from an inconclusive event: a failed capture of a purchase, since Adyen often captures again within
 * days (the failure does not affect an authorization), or an operation whose kind is not signed.
 */
function alarm(
  item: Item,
  detail: string,
  about: Pick<SignedOutcome, 'ofPurchase'> = {},
): Pick<NotificationSubject, 'signed'> {
  const money = fromAdyenAmount(item.amount);
  const outcome = alarmingOutcome(`${detail} ${item.reason}`.trim());
  return money ? { signed: { outcome, ...money, ...about } } : {};
}

function signed(
  item: Item,
  ended: Ended,
  pspReference: string | undefined,
  shownAs: ShownAs,
): Pick<NotificationSubject, 'signed'> {
  const money = fromAdyenAmount(item.amount);
  if (!money) return {};
  return { signed: { outcome: outcomeOf(item, ended, pspReference, shownAs), ...money } };
}

/** Builds the outcome. The code of a refusal is in an unsigned field, so it is shown but decides nothing. */
function outcomeOf(item: Item, ended: Ended, pspReference: string | undefined, shownAs: ShownAs): Outcome {
  const { eventCode } = item;
  const providerData = providerDataOf(item, eventCode, shownAs);
  providerData.subStatus = item.success === 'true' ? 'success' : 'failure';
  providerData.responseMessage = ended === 'declined' ? item.reason : '';
  // Only successful events are corrections: a refusal of a previously approved payment is not.
  const corrects = item.success === 'true' ? correcting(CORRECTED, eventCode) : {};
  const reported = { providerData, ...namesOf(pspReference) };
  if (ended === 'expired') return { kind: 'expired', ...reported };
  if (ended === 'declined') return { kind: 'declined', ...reported, ...corrects, ...SOFT_DECLINE };
  return withCard(approvedOutcome({ ...reported, ...corrects }, item.additionalData.authCode), item);
}
