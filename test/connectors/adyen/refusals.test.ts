import { describe, expect, it } from 'vitest';
import { readAnswer } from '#src/connectors/adyen/answers.ts';
import { fromRefusal, meaningOf } from '#src/connectors/adyen/refusals.ts';
import { declineOf } from '#src/connectors/port/decline.ts';

/** Adyen's refusal reasons as documented in July 2026: code, ISO 8583, the merchant's code, hard, text. */
const ROWS: readonly (readonly [code: string, iso: string, unified: string, hard: boolean, text: string])[] =
  [
    ['2', '05', 'DO_NOT_HONOR', false, 'Refused'],
    ['3', '05', 'DO_NOT_HONOR', false, 'Referral'],
    ['4', '96', 'ACQUIRER_CONTINGENCY', false, 'Acquirer Error'],
    ['5', '62', 'RESTRICTED_BY_BANK', false, 'Blocked Card'],
    ['6', '54', 'EXPIRED_CARD', true, 'Expired Card'],
    ['7', '13', 'DECLINED_BY_BANK', false, 'Invalid Amount'],
    ['8', '14', 'INVALID_CARD_NUMBER', true, 'Invalid Card Number'],
    ['9', '91', 'ACQUIRER_CONTINGENCY', false, 'Issuer Unavailable'],
    ['10', '57', 'USER_RESTRICTION', true, 'Not supported'],
    ['11', '1A', 'DECLINED_BY_BANK', false, '3D Not Authenticated'],
    ['12', '51', 'INSUFFICIENT_FUNDS', false, 'Not enough balance'],
    ['14', '59', 'FRAUD_SUSPECTED', true, 'Acquirer Fraud'],
    ['15', '05', 'DO_NOT_HONOR', false, 'Cancelled'],
    ['16', '05', 'DO_NOT_HONOR', false, 'Shopper Cancelled'],
    ['17', '55', 'DECLINED_BY_BANK', false, 'Invalid Pin'],
    ['18', '75', 'DECLINED_BY_BANK', false, 'Pin tries exceeded'],
    ['19', '55', 'DECLINED_BY_BANK', false, 'Pin validation not possible'],
    ['20', '59', 'FRAUD_SUSPECTED', true, 'FRAUD'],
    ['21', '12', 'DECLINED_BY_BANK', false, 'Not Submitted'],
    ['22', '59', 'FRAUD_SUSPECTED', true, 'FRAUD-CANCELLED'],
    ['23', '57', 'USER_RESTRICTION', true, 'Transaction Not Permitted'],
    ['24', 'N7', 'INVALID_SECURITY_CODE', true, 'CVC Declined'],
    ['25', '62', 'RESTRICTED_BY_BANK', false, 'Restricted Card'],
    ['26', '57', 'USER_RESTRICTION', true, 'Revocation Of Auth'],
    ['27', '05', 'DO_NOT_HONOR', false, 'Declined Non Generic'],
    ['28', '61', 'LIMIT_EXCEEDED', false, 'Withdrawal amount exceeded'],
    ['29', '65', 'LIMIT_EXCEEDED', false, 'Withdrawal count exceeded'],
    ['31', '59', 'FRAUD_SUSPECTED', true, 'Issuer Suspected Fraud'],
    ['32', '05', 'DO_NOT_HONOR', false, 'AVS Declined'],
    ['33', '55', 'DECLINED_BY_BANK', false, 'Card requires online pin'],
    ['34', '52', 'DECLINED_BY_BANK', false, 'No checking account available on Card'],
    ['35', '53', 'DECLINED_BY_BANK', false, 'No savings account available on Card'],
    ['36', '55', 'DECLINED_BY_BANK', false, 'Mobile pin required'],
    ['37', '65', 'LIMIT_EXCEEDED', false, 'Contactless fallback'],
    ['38', '1A', 'DECLINED_BY_BANK', false, 'Authentication required'],
    ['39', '91', 'ACQUIRER_CONTINGENCY', false, 'RReq not received from DS'],
    ['40', '91', 'ACQUIRER_CONTINGENCY', false, 'Current AID is in Penalty Box'],
    ['41', '55', 'DECLINED_BY_BANK', false, 'CVM Required Restart Payment'],
    ['42', '1A', 'DECLINED_BY_BANK', false, '3DS Authentication Error'],
    ['43', '55', 'DECLINED_BY_BANK', false, ''],
    ['44', '05', 'DO_NOT_HONOR', false, ''],
    ['45', '05', 'DO_NOT_HONOR', false, ''],
    ['46', '57', 'USER_RESTRICTION', true, 'Transaction blocked by Adyen to prevent excessive retry fees'],
    ['50', '57', 'USER_RESTRICTION', true, 'Token Revoked'],
  ];

const REFUSED = { resultCode: 'Refused', code: '', text: '', raw: '' };

describe('a refusal by Adyen', () => {
  it.each(ROWS)('the Adyen refusal reason %s maps to ISO 8583 %s, %s', (code, iso, unified, hard) => {
    expect(meaningOf({ ...REFUSED, code })).toMatchObject({ iso8583Code: iso });
    expect(declineOf(iso)).toMatchObject({ code: unified, hard });
  });

  it.each(ROWS.filter(([, , , , text]) => text !== ''))(
    'the Adyen refusal reason %s maps to ISO 8583 %s even if only its text is reported',
    (code, iso, _unified, _hard, text) => {
      expect(meaningOf({ ...REFUSED, code: '0', text })).toEqual(meaningOf({ ...REFUSED, code }));
      expect(meaningOf({ ...REFUSED, code }).iso8583Code).toBe(iso);
    },
  );

  it.each(['0', '', '1', '13', '99', '9999', '00', 'Authorised', '__proto__'])(
    "Adyen's unknown refusal code %j is a soft decline, not an approval",
    (code) => {
      expect(meaningOf({ ...REFUSED, code })).toEqual({ iso8583Code: '05', advice: 'NONE' });
      expect(declineOf('05').hard).toBe(false);
    },
  );

  it.each(['15', '16', ''])(
    "Adyen's result Cancelled with the code %j means that the shopper canceled",
    (code) => {
      expect(meaningOf({ ...REFUSED, resultCode: 'Cancelled', code })).toEqual({
        iso8583Code: '17',
        advice: 'NONE',
      });
      expect(declineOf('17')).toMatchObject({ code: 'CANCELED_BY_PAYER', hard: true });
    },
  );

  it('an Adyen error without a reason maps to a system malfunction', () => {
    expect(meaningOf({ ...REFUSED, resultCode: 'Error' })).toMatchObject({ iso8583Code: '96' });
  });

  it.each([
    ['51 : Insufficient funds', '51'],
    ['5 : Do not honor', '05'],
    ['43 : Stolen card', '43'],
    ['N7 : FRAUD', 'N7'],
  ])("an Adyen refusal shows the issuer's code, %j, if the account receives it", (raw, iso8583Code) => {
    expect(meaningOf({ ...REFUSED, code: '2', raw })).toMatchObject({ iso8583Code });
  });

  it.each(['00 : Approved', '0 : Approved', '85 : No reason to decline', 'Approved', ''])(
    "an Adyen refusal does not become an approval because of the issuer's code %j",
    (raw) => {
      expect(meaningOf({ ...REFUSED, code: '12', raw })).toMatchObject({ iso8583Code: '51' });
    },
  );

  it('an Adyen refusal is a hard decline if Adyen forbids a retry, even if the issuer allows one', () => {
    expect(meaningOf({ ...REFUSED, code: '46', raw: '05 : Do not honor' })).toEqual({
      iso8583Code: '57',
      advice: 'NEVER',
    });
  });

  it.each([
    ['the issuer, with a code of its scheme', { code: '2', raw: '12 : Invalid transaction' }, '12', 'NEVER'],
    ['the issuer, who stops the payment', { code: '2', raw: 'R0 : Stop payment' }, 'R0', 'REVOKED'],
    ['Adyen itself', { code: '46', raw: '54 : Expired card' }, '54', 'NEVER'],
    [
      'Mastercard',
      { code: '2', raw: '05 : Do not honor', adviceCode: '03 : Do not try again' },
      '05',
      'NEVER',
    ],
  ])(
    'an Adyen refusal advises against every other try if %s forbids it',
    (_who, refusal, iso8583Code, advice) => {
      expect(meaningOf({ ...REFUSED, ...refusal })).toEqual({ iso8583Code, advice });
    },
  );

  it("Adyen's reason 21 (12 in our terms) forbids no other try, since the scheme did not say so", () => {
    expect(meaningOf({ ...REFUSED, code: '21' })).toEqual({ iso8583Code: '12', advice: 'NONE' });
  });

  it("a payment that Adyen refuses does not fail over while Mastercard's advice asks to wait", () => {
    expect(meaningOf({ ...REFUSED, code: '12', adviceCode: '25 : Retry after 24 hours' })).toEqual({
      iso8583Code: '51',
      advice: { laterHours: 24 },
      nowhereElse: true,
    });
  });

  it('a payment that Adyen refuses does not fail over if the issuer has just seen an equal charge', () => {
    const duplicate = { iso8583Code: '94', advice: 'NONE', nowhereElse: true };
    expect(meaningOf({ ...REFUSED, code: '2', raw: '94 : Duplicate transmission' })).toEqual(duplicate);
    expect(meaningOf({ ...REFUSED, code: '46', raw: '94 : Duplicate transmission' })).toMatchObject({
      nowhereElse: true,
    });
  });
});

/** The outcome of a card payment that Adyen refuses with an error. @param named the status that the error names. */
function refusedFor(errorCode: string, named = 422) {
  const answer = readAnswer({ status: named, errorType: 'validation', errorCode, message: 'no' });
  return fromRefusal(422, answer, true, { providerId: 'ADYEN', merchantAccount: 'ShopECOM' });
}

describe('an error from Adyen', () => {
  it('an Adyen error proves nothing if its body names a different status from that of the response', () => {
    expect(refusedFor('101')).toMatchObject({ kind: 'declined' });
    expect(refusedFor('101', 500)).toMatchObject({ kind: 'unknown' });
  });

  it.each([
    ['101', '14'],
    ['0101', '14'],
    ['102', '14'],
    ['103', 'N7'],
    ['129', '54'],
    ['141', '54'],
    ['153', 'N7'],
  ])('the Adyen error code %s means the decline %s', (errorCode, iso8583Code) => {
    expect(refusedFor(errorCode)).toMatchObject({ kind: 'declined', iso8583Code });
  });

  it.each([
    '0',
    '000',
    '10',
    '100',
    '104',
    '130',
    '132',
    '137',
    '138',
    '167',
    '177',
    '702',
    '704',
    '800',
    '901',
    '905',
    '14_030',
    '',
  ])('an Adyen error code %j is not a decline', (errorCode) => {
    expect(refusedFor(errorCode).kind).toBe(errorCode === '704' ? 'unknown' : 'not_sent');
  });
});
