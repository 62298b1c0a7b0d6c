import { create } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import { declineOf } from '#src/connectors/port/decline.ts';
import { readIntent } from '#src/connectors/stripe/answers.ts';
import { declined, meaningOf } from '#src/connectors/stripe/refusals.ts';

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
    expect(meaningOf(reason)).toMatchObject({ iso8583Code });
    expect(declineOf(iso8583Code)).toMatchObject({ code, hard });
  });

  it('a payment that Stripe declines as a duplicate does not fail over', () => {
    expect(meaningOf('duplicate_transaction')).toEqual({
      iso8583Code: '94',
      advice: 'NONE',
      nowhereElse: true,
    });
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
    for (const [reason] of REASONS)
      expect(meaningOf(reason, 'blocked')).toEqual({ iso8583Code: '59', advice: 'NONE' });
  });
});

/** The decline of an intent whose error, or whose charge, has fields that newer versions of Stripe's API report. */
function declinedWith(fields: Readonly<Record<string, string>>, at: 'error' | 'charge') {
  const error = { code: 'card_declined', decline_code: 'generic_decline', ...(at === 'error' && fields) };
  const intent = readIntent({
    last_payment_error: error,
    latest_charge: { outcome: { type: 'issuer_declined', ...(at === 'charge' && fields) } },
  });
  if (!intent.last_payment_error) throw new Error('the intent has no error');
  return declined(intent.last_payment_error, intent, create(ProviderDataSchema));
}

describe("the advice of the card's scheme in Stripe's decline", () => {
  it.each([
    [{ network_decline_code: '04' }, { advice: 'NEVER' }],
    [{ network_decline_code: 'R1' }, { advice: 'REVOKED' }],
    [{ network_decline_code: '51' }, { advice: 'NONE' }],
    [{ advice_code: 'do_not_try_again' }, { advice: 'NEVER' }],
    [{ advice_code: 'confirm_card_data' }, { advice: 'NEW_DATA' }],
    [{ advice_code: 'try_again_later' }, { advice: { laterHours: 24 } }],
    [{ network_advice_code: '24' }, { advice: { laterHours: 1 }, nowhereElse: true }],
    [{ advice_code: 'try_again_later', network_advice_code: '03' }, { advice: 'NEVER' }],
    [{ advice_code: 'do_not_try_again', network_advice_code: '02' }, { advice: 'NEVER' }],
  ])("a Stripe payment's decline with %j advises %j", (fields, expected) => {
    for (const at of ['error', 'charge'] as const) {
      const { kind, providerData, ...reason } = declinedWith(fields, at) as ReturnType<
        typeof declinedWith
      > & {
        providerData: unknown;
      };
      expect([kind, reason]).toEqual(['declined', { iso8583Code: '05', ...expected }]);
    }
  });

  it("Stripe's network advice code is Mastercard's, and the record shows it", () => {
    for (const at of ['error', 'charge'] as const) {
      expect(declinedWith({ network_advice_code: '03' }, at)).toMatchObject({
        providerData: { merchantAdviceCode: '03', merchantAdviceCodeMessage: 'Do not try again' },
      });
    }
  });
});
