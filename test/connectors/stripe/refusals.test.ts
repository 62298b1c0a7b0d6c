import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { declineOf } from '#src/connectors/decline.ts';
import { meaningOf } from '#src/connectors/stripe/refusals.ts';

/** Reasons with different meanings for merchants; the table itself lists all reasons. */
const REASONS = [
  ['insufficient_funds', '51', 'INSUFFICIENT_FUNDS', false],
  ['card_declined', '05', 'DO_NOT_HONOR', false],
  ['lost_card', '41', 'REPORTED_LOST', true],
  ['expired_card', '54', 'EXPIRED_CARD', true],
  ['incorrect_cvc', 'N7', 'INVALID_SECURITY_CODE', true],
  ['authentication_required', '1A', 'DECLINED_BY_BANK', false],
  // The issuer may have approved too late.
  ['payment_method_provider_timeout', '68', 'PROVIDER_TIMEOUT', true],
] as const;

describe("Stripe's decline codes", () => {
  it.each(REASONS)("Stripe's decline code %s maps to ISO 8583 %s, %s", (reason, iso8583Code, code, hard) => {
    expect(meaningOf(reason)).toEqual({ iso8583Code });
    expect(declineOf(iso8583Code)).toMatchObject({ code, hard });
  });

  it('a payment that Stripe declines as a duplicate does not fail over', () => {
    expect(meaningOf('duplicate_transaction')).toEqual({ iso8583Code: '94', nowhereElse: true });
  });

  it("Stripe's unknown decline codes are soft declines", () => {
    const unknown = fc.string().map((text) => `${text}?`);
    fc.assert(
      fc.property(
        fc.oneof(unknown, fc.constantFrom('', 'constructor', '__proto__', 'approved', 'succeeded')),
        (code) => meaningOf(code).iso8583Code === '05',
      ),
    );
    expect(declineOf('05').hard).toBe(false);
  });

  it('any decline code of a payment that Stripe Radar blocked means suspected fraud', () => {
    for (const [reason] of REASONS) expect(meaningOf(reason, 'blocked')).toEqual({ iso8583Code: '59' });
  });
});
