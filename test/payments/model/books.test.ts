import { describe, expect, it } from 'vitest';
import { CARDS_ONLY, type Capabilities } from '#src/connectors/port/capabilities.ts';
import type { Money } from '#src/money.ts';
import {
  type Books,
  booksAfter,
  leftToCapture,
  leftToRefund,
  planCancel,
  planCapture,
  planRefund,
  undoingType,
} from '#src/payments/model/books.ts';
import { ServiceError } from '#src/service-error.ts';

const ABLE = { ...CARDS_ONLY, captures: 10, refunds: 'several', cancel: true } as const;
const usd = (minorUnits: bigint) => ({ minorUnits, currency: 'USD' });

const authorized = (changes: Partial<Books> = {}): Books => ({
  currency: 'USD',
  amount: 100n,
  isAuthorization: true,
  captured: 0n,
  refunded: 0n,
  isReleased: false,
  ...changes,
});
const purchased = (changes: Partial<Books> = {}) => authorized({ isAuthorization: false, ...changes });

/** The error with which a plan is refused: its reason, and what the caller reads. */
function refusalOf(plan: () => unknown): { reason: string; message: string; fields: unknown } {
  try {
    plan();
  } catch (error) {
    if (error instanceof ServiceError) return error as never;
    throw error;
  }
  throw new Error('it was not refused');
}

describe('remaining amounts', () => {
  it('the remaining amount to capture is the uncaptured part of an authorization, or zero once it is released', () => {
    expect(leftToCapture(authorized({ captured: 30n }))).toBe(70n);
    expect(leftToCapture(authorized({ captured: 30n, isReleased: true }))).toBe(0n);
    expect(leftToCapture(purchased())).toBe(0n);
  });

  it('the remaining amount to refund is the captured amount, or all of a purchase, less earlier refunds', () => {
    expect(leftToRefund(authorized({ captured: 60n, refunded: 10n }))).toBe(50n);
    expect(leftToRefund(purchased({ refunded: 10n }))).toBe(90n);
  });

  it('a cancel undoes an authorization without captures, or with a held rest after full refunds', () => {
    expect(undoingType(authorized())).toBe('CANCEL');
    expect(undoingType(authorized({ captured: 1n }))).toBe('REFUND');
    expect(undoingType(authorized({ captured: 2n, refunded: 1n }))).toBe('REFUND');
    expect(undoingType(authorized({ captured: 2n, refunded: 2n }))).toBe('CANCEL');
    expect(undoingType(authorized({ captured: 2n, refunded: 2n, isReleased: true }))).toBe('REFUND');
    expect(undoingType(authorized({ isReleased: true }))).toBe('CANCEL');
    expect(undoingType(purchased())).toBe('REFUND');
  });
});

describe('planCapture', () => {
  it('planCapture captures all that remains, even one minor unit, when no amount is given', () => {
    expect(planCapture(authorized({ captured: 99n }), undefined, 0, ABLE)).toEqual({
      type: 'CAPTURE',
      money: usd(1n),
      isWhole: true,
      isFinal: true,
    });
  });

  it('planCapture captures a part, which is final if it is the last that the provider allows', () => {
    expect(planCapture(authorized(), usd(40n), 0, ABLE)).toMatchObject({ isWhole: false, isFinal: false });
    expect(planCapture(authorized(), usd(40n), 0, { ...ABLE, captures: 1 })).toMatchObject({
      money: usd(40n),
      isWhole: false,
      isFinal: true,
    });
    const part = (made: number) => planCapture(authorized({ captured: 9n }), usd(1n), made, ABLE);
    expect([part(8), part(9)]).toMatchObject([{ isFinal: false }, { isFinal: true }]);
  });

  it('planCapture is final if requested, and releases the rest', () => {
    expect(planCapture(authorized(), usd(40n), 0, ABLE, true)).toMatchObject({
      isWhole: false,
      isFinal: true,
    });
    const only = { ...ABLE, captures: 1 };
    expect(planCapture(authorized(), usd(40n), 0, only, true)).toMatchObject({ isFinal: true });
  });

  it('planCapture refuses to keep the rest if the provider would release it', () => {
    expect(planCapture(authorized(), usd(40n), 0, ABLE, false)).toMatchObject({ isFinal: false });
    const keeping = (made: number, can: Partial<Capabilities>, amount?: Money) =>
      planCapture(authorized(), amount, made, { ...ABLE, ...can }, false);
    for (const kept of [() => keeping(0, { captures: 1 }, usd(40n)), () => keeping(9, {}, usd(99n))]) {
      expect(refusalOf(kept)).toMatchObject({
        reason: 'OPERATION_NOT_SUPPORTED',
        fields: [{ field: 'final_capture', code: 'NOT_SUPPORTED' }],
      });
    }
    // After a full capture, no rest is left to keep.
    expect(keeping(0, { captures: 1 })).toMatchObject({ isWhole: true, isFinal: true });
  });

  it('planCapture refuses more than the remaining amount, and names that amount', () => {
    expect(planCapture(authorized(), usd(100n), 0, ABLE)).toMatchObject({ money: usd(100n), isWhole: true });
    const refused = refusalOf(() => planCapture(authorized({ captured: 30n }), usd(71n), 0, ABLE));
    expect(refused).toMatchObject({
      reason: 'INVALID_AMOUNT',
      message: 'amount.value: must be at most 0.70, the amount left to capture',
      fields: [
        {
          field: 'amount.value',
          code: 'OUT_OF_RANGE',
          message: 'must be at most 0.70, the amount left to capture',
        },
      ],
    });
  });

  it('planCapture refuses an amount in another currency', () => {
    const refused = refusalOf(() => planCapture(authorized(), { minorUnits: 1n, currency: 'EUR' }, 0, ABLE));
    expect(refused).toMatchObject({
      reason: 'CURRENCY_NOT_ALLOWED',
      fields: [{ field: 'amount.currency', code: 'OUT_OF_RANGE' }],
    });
  });

  it('planCapture refuses a capture when nothing remains, and when the provider does not offer captures', () => {
    expect(refusalOf(() => planCapture(authorized({ captured: 100n }), undefined, 0, ABLE))).toMatchObject({
      reason: 'INVALID_STATUS',
      message: expect.stringContaining('nothing left to capture; nothing was sent'),
    });
    expect(refusalOf(() => planCapture(authorized(), undefined, 0, CARDS_ONLY))).toMatchObject({
      reason: 'OPERATION_NOT_SUPPORTED',
      message: expect.stringContaining('does not offer captures; nothing was sent'),
    });
  });
});

describe('planCancel', () => {
  it('planCancel releases all that is not captured, and is full while nothing is captured', () => {
    expect(planCancel(authorized(), ABLE)).toEqual({
      type: 'CANCEL',
      money: usd(100n),
      isWhole: true,
      isFinal: true,
    });
    expect(planCancel(authorized({ captured: 99n }), ABLE)).toMatchObject({ money: usd(1n), isWhole: false });
  });

  it('planCancel refuses a cancel when nothing remains, and when the provider does not offer cancels', () => {
    expect(refusalOf(() => planCancel(purchased(), ABLE))).toMatchObject({ reason: 'INVALID_STATUS' });
    expect(refusalOf(() => planCancel(authorized(), CARDS_ONLY))).toMatchObject({
      reason: 'OPERATION_NOT_SUPPORTED',
      message: expect.stringContaining('does not offer cancels;'),
    });
  });

  it('planCancel advises a refund only if an amount remains to refund', () => {
    const messageOf = (books: Books) => refusalOf(() => planCancel(books, ABLE)).message;
    const taken = [purchased(), purchased({ refunded: 99n }), authorized({ captured: 100n })];
    for (const books of taken)
      expect(messageOf(books)).toContain('; refund the captured amount; nothing was sent');
    const canceled = authorized({ isReleased: true });
    for (const books of [canceled, purchased({ refunded: 100n })])
      expect(messageOf(books)).toContain(': there is nothing left to cancel; nothing was sent');
  });
});

describe('planRefund', () => {
  const whole = { amount: 100n, refunded: 0n };

  it('planRefund refunds all that remains, even one minor unit, when no amount is given', () => {
    expect(
      planRefund(purchased({ refunded: 99n }), { amount: 100n, refunded: 99n }, undefined, ABLE),
    ).toEqual({
      type: 'REFUND',
      money: usd(1n),
      isWhole: true,
      isFinal: true,
    });
  });

  it('planRefund refunds no more than remains of the transaction or of the payment', () => {
    const books = authorized({ captured: 80n, refunded: 10n });
    expect(planRefund(books, { amount: 50n, refunded: 10n }, undefined, ABLE)).toMatchObject({
      money: usd(40n),
      isWhole: false,
      isFinal: false,
    });
    expect(planRefund(books, whole, undefined, ABLE)).toMatchObject({ money: usd(70n), isWhole: true });
    expect(refusalOf(() => planRefund(books, { amount: 50n, refunded: 10n }, usd(41n), ABLE))).toMatchObject({
      reason: 'INVALID_AMOUNT',
      message: expect.stringContaining('at most 0.40, the amount left to refund'),
    });
  });

  it('planRefund allows only full refunds if the provider allows one refund', () => {
    const once = { ...ABLE, refunds: 'one' } as const;
    expect(planRefund(purchased(), whole, undefined, once)).toMatchObject({ isWhole: true });
    expect(refusalOf(() => planRefund(purchased(), whole, usd(99n), once))).toMatchObject({
      reason: 'OPERATION_NOT_SUPPORTED',
      message: expect.stringContaining('does not offer partial refunds;'),
    });
    expect(planRefund(purchased(), whole, usd(99n), ABLE)).toMatchObject({ isWhole: false });
  });

  it('planRefund refuses a refund when nothing remains, and when the provider does not offer refunds', () => {
    expect(refusalOf(() => planRefund(authorized(), whole, undefined, ABLE))).toMatchObject({
      reason: 'INVALID_STATUS',
      message: expect.stringContaining('nothing left to refund'),
    });
    const spent = { amount: 30n, refunded: 30n };
    expect(
      refusalOf(() => planRefund(authorized({ captured: 100n, refunded: 30n }), spent, undefined, ABLE)),
    ).toMatchObject({ reason: 'INVALID_STATUS' });
    expect(refusalOf(() => planRefund(purchased(), whole, undefined, CARDS_ONLY))).toMatchObject({
      reason: 'OPERATION_NOT_SUPPORTED',
      message: expect.stringContaining('does not offer refunds;'),
    });
  });
});

describe('booksAfter', () => {
  it('booksAfter adds captured amounts, and releases the rest after the last capture', () => {
    const part = { type: 'CAPTURE', money: usd(40n), isFinal: false } as const;
    const books = authorized({ captured: 10n });
    expect(booksAfter(books, part)).toEqual({ ...books, captured: 50n });
    expect(booksAfter(books, { ...part, isFinal: true })).toEqual({
      ...books,
      captured: 50n,
      isReleased: true,
    });
    expect(booksAfter({ ...books, isReleased: true }, part)).toMatchObject({ isReleased: true });
  });

  it('booksAfter releases canceled amounts, and adds refunds', () => {
    expect(booksAfter(authorized(), { type: 'CANCEL', money: usd(100n), isFinal: true })).toEqual(
      authorized({ isReleased: true }),
    );
    expect(
      booksAfter(purchased({ refunded: 10n }), { type: 'REFUND', money: usd(40n), isFinal: false }),
    ).toEqual(purchased({ refunded: 50n }));
  });
});
