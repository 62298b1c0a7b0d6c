import type { Capabilities } from '#src/connectors/port/capabilities.ts';
import { formatMoney, type Money } from '#src/money.ts';
import { fieldRefusal, ServiceError } from '#src/service-error.ts';

/** Amounts purchased, captured and refunded, in minor units of the payment's currency. */
export type Books = {
  readonly currency: string;
  /** Amount purchased or authorized. */
  readonly amount: bigint;
  /** false: a purchase, which is captured immediately. */
  readonly isAuthorization: boolean;
  /** Sum of the captures; 0 for a purchase. */
  readonly captured: bigint;
  readonly refunded: bigint;
  /** true: nothing more may be captured, because of a cancel, a lapse, or a final capture. */
  readonly isReleased: boolean;
};

/** An operation on money that acts on a payment. */
export type OperationType = 'CAPTURE' | 'CANCEL' | 'REFUND';

/** A planned operation. */
export type PlannedOperation = {
  readonly type: OperationType;
  readonly money: Money;
  /** true: covers everything left to capture, cancel or refund. */
  readonly isWhole: boolean;
  /** true if nothing can be captured afterwards. */
  readonly isFinal: boolean;
};

/** A transaction that a refund may act on. */
export type Refundable = { readonly amount: bigint; readonly refunded: bigint };

/** Returns the amount left to capture. */
export function leftToCapture(books: Books): bigint {
  return books.isAuthorization && !books.isReleased ? books.amount - books.captured : 0n;
}

/** Returns the amount left to refund. */
export function leftToRefund(books: Books): bigint {
  return (books.isAuthorization ? books.captured : books.amount) - books.refunded;
}

/**
 * Returns the operation that undoes a payment: a cancel while nothing is captured, otherwise a refund. Once everything
 * captured is refunded, a cancel of the remaining authorization.
 */
export function undoingType(books: Books): 'CANCEL' | 'REFUND' {
  if (books.isAuthorization && books.captured === 0n) return 'CANCEL';
  return leftToRefund(books) === 0n && leftToCapture(books) > 0n ? 'CANCEL' : 'REFUND';
}

/**
 * Plans a capture.
 *
 * @param requested undefined for the full remaining amount.
 * @param made number of captures so far.
 * @param isFinal true releases the rest, false keeps it; undefined leaves that to the provider.
 * @throws ServiceError INVALID_STATUS, INVALID_AMOUNT or OPERATION_NOT_SUPPORTED.
 */
export function planCapture(
  books: Books,
  requested: Money | undefined,
  made: number,
  can: Capabilities,
  isFinal?: boolean,
): PlannedOperation {
  const left = leftToCapture(books);
  if (left <= 0n) throw invalidStatus('there is nothing left to capture');
  if (can.captures === 0) throw notSupported('captures');
  const amount = requireWithin(books, requested, left, 'capture');
  const isWhole = amount === left;
  const isLast = made + 1 >= can.captures;
  if (isFinal === false && isLast && !isWhole) throw releasesRest(can.captures);
  return {
    type: 'CAPTURE',
    money: { minorUnits: amount, currency: books.currency },
    isWhole,
    isFinal: isWhole || isLast || isFinal === true,
  };
}

/**
 * Plans a cancel, which releases the uncaptured amount.
 *
 * @throws ServiceError INVALID_STATUS or OPERATION_NOT_SUPPORTED.
 */
export function planCancel(books: Books, can: Capabilities): PlannedOperation {
  const left = leftToCapture(books);
  if (left <= 0n) {
    const advice = leftToRefund(books) > 0n ? '; refund the captured amount' : '';
    throw invalidStatus(`there is nothing left to cancel${advice}`);
  }
  if (!can.cancel) throw notSupported('cancels');
  const money = { minorUnits: left, currency: books.currency };
  return { type: 'CANCEL', money, isWhole: left === books.amount, isFinal: true };
}

/**
 * Plans the cancel that closes a payment whose payer has yet to act.
 *
 * @param money the payment's whole amount.
 * @throws ServiceError OPERATION_NOT_SUPPORTED.
 */
export function planClose(money: Money, can: Capabilities): PlannedOperation {
  if (!can.close) throw notSupported('the cancel of a payment that awaits its payer');
  // Nothing is released, so that money that the payer sends at the last moment can be accepted.
  return { type: 'CANCEL', money, isWhole: true, isFinal: false };
}

/**
 * Plans the cancel that undoes a payment with nothing left to refund.
 *
 * @param requested must be undefined: a cancel cannot be partial, and a full amount would read as a refund.
 * @throws ServiceError INVALID_STATUS or OPERATION_NOT_SUPPORTED.
 */
export function planUndoingCancel(
  books: Books,
  requested: Money | undefined,
  can: Capabilities,
): PlannedOperation {
  const planned = planCancel(books, can);
  if (!requested) return planned;
  const message =
    'must be omitted: nothing is left to refund; nothing was sent; call cancel to release the authorization, or capture to keep part of it';
  throw fieldRefusal('INVALID_STATUS', 'amount', 'NOT_ALLOWED', message);
}

/** Refuses an amount for a payment that has taken none. @throws ServiceError INVALID_STATUS. */
export function requireNoAmount(requested: Money | undefined): void {
  if (!requested) return;
  const message = 'must be omitted: the payment awaits its payer and has taken no money; nothing was sent';
  throw fieldRefusal('INVALID_STATUS', 'amount', 'NOT_ALLOWED', message);
}

/**
 * Plans a refund.
 *
 * @param of the refunded transaction, whose remaining amount is a limit too.
 * @param requested undefined for the full remaining amount.
 * @throws ServiceError INVALID_STATUS, INVALID_AMOUNT or OPERATION_NOT_SUPPORTED.
 */
export function planRefund(
  books: Books,
  of: Refundable,
  requested: Money | undefined,
  can: Capabilities,
): PlannedOperation {
  const leftOfAll = leftToRefund(books);
  const leftOfIt = of.amount - of.refunded;
  // Stryker disable next-line EqualityOperator: if both are equal, either is the limit
  const left = leftOfIt < leftOfAll ? leftOfIt : leftOfAll;
  if (left <= 0n) throw invalidStatus('there is nothing left to refund');
  if (can.refunds === 'none') throw notSupported('refunds');
  const amount = requireWithin(books, requested, left, 'refund');
  const isWhole = amount === leftOfAll;
  if (!isWhole && can.refunds === 'one') throw notSupported('partial refunds');
  return {
    type: 'REFUND',
    money: { minorUnits: amount, currency: books.currency },
    isWhole,
    isFinal: isWhole,
  };
}

/**
 * Returns the money that a successful operation has moved: the reported amount, but at most what the books can hold. The
 * requested amount counts if the provider reports none in its currency, and for a cancel, which moves no money.
 */
export function movedMoney(
  books: Books,
  operation: Pick<PlannedOperation, 'type' | 'money'>,
  reported: Money | undefined,
): Money {
  const money = reportedMoney(operation, reported);
  const left = operation.type === 'CAPTURE' ? books.amount - books.captured : leftToRefund(books);
  return operation.type === 'CANCEL' || money.minorUnits <= left ? money : { ...money, minorUnits: left };
}

/** Returns the reported money of an operation, whatever the books can hold. */
export function reportedMoney(
  { type, money }: Pick<PlannedOperation, 'type' | 'money'>,
  reported: Money | undefined,
): Money {
  const isAmount = type !== 'CANCEL' && reported?.currency === money.currency && reported.minorUnits > 0n;
  return isAmount ? reported : money;
}

/** Returns the books after an operation. */
export function booksAfter(
  books: Books,
  operation: Pick<PlannedOperation, 'type' | 'isFinal' | 'money'>,
): Books {
  const { minorUnits } = operation.money;
  switch (operation.type) {
    case 'CAPTURE':
      return {
        ...books,
        captured: books.captured + minorUnits,
        isReleased: books.isReleased || operation.isFinal,
      };
    case 'CANCEL':
      return { ...books, isReleased: true };
    case 'REFUND':
      return { ...books, refunded: books.refunded + minorUnits };
  }
}

/**
 * Returns the books after a recorded capture or refund has failed at the provider.
 *
 * @param isReleased true: the uncaptured amount stays released despite the failure.
 */
export function booksWithout(
  books: Books,
  operation: Pick<PlannedOperation, 'type' | 'money'>,
  isReleased: boolean,
): Books {
  const { minorUnits } = operation.money;
  return operation.type === 'CAPTURE'
    ? { ...books, captured: books.captured - minorUnits, isReleased }
    : { ...books, refunded: books.refunded - minorUnits };
}

function requireWithin(books: Books, requested: Money | undefined, left: bigint, verb: string): bigint {
  if (!requested) return left;
  if (requested.currency !== books.currency) {
    const message = `must be the payment's currency, ${books.currency}`;
    throw fieldRefusal('CURRENCY_NOT_ALLOWED', 'amount.currency', 'OUT_OF_RANGE', message);
  }
  if (requested.minorUnits <= left) return requested.minorUnits;
  const most = formatMoney({ minorUnits: left, currency: books.currency });
  const message = `must be at most ${most}, the amount left to ${verb}`;
  throw fieldRefusal('INVALID_AMOUNT', 'amount.value', 'OUT_OF_RANGE', message);
}

function invalidStatus(why: string): ServiceError {
  return new ServiceError(
    'INVALID_STATUS',
    `the payment's status does not allow this operation: ${why}; nothing was sent`,
  );
}

function releasesRest(captures: number): ServiceError {
  const most = captures === 1 ? 'one capture' : `${captures} captures`;
  const message = `must not be false: the payment's provider accepts at most ${most} and releases the rest with the last; nothing was sent`;
  return fieldRefusal('OPERATION_NOT_SUPPORTED', 'final_capture', 'NOT_SUPPORTED', message);
}

/** Returns the refusal of an operation that a payment's provider does not offer. */
export function notSupported(what: string): ServiceError {
  const message = `the payment's provider does not offer ${what}; nothing was sent`;
  return new ServiceError('OPERATION_NOT_SUPPORTED', message);
}
