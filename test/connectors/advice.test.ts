import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readMerchantAdvice, withMerchantAdvice } from '#src/connectors/kit/merchant-advice.ts';
import { declineBy, declineByScheme } from '#src/connectors/kit/refusal.ts';
import { type Advice, adviceOfScheme, type DeclineReason, isHard } from '#src/connectors/port/decline.ts';

const CONNECTORS = new URL('../../src/connectors/', import.meta.url);

/** The reasons for which each provider's own words forbid every other try. */
const FINAL: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  adyen: {
    NEVER: '46 transaction_blocked_by_adyen_to_prevent_excessive_retry_fees',
    REVOKED: '26 revocation_of_auth',
  },
  'mercado-pago': { REVOKED: 'authorization_revoked' },
  paypal: { NEVER: '5140 5150 5180 9500 9520 PPRN' },
  sandbox: {},
  stripe: {
    NEVER: 'do_not_try_again lost_card pickup_card stolen_card',
    REVOKED: 'revocation_of_all_authorizations revocation_of_authorization stop_payment_order',
  },
};

type Rows = readonly ({ readonly means: string | DeclineReason } & { readonly [column: string]: unknown })[];

async function rowsOf(provider: string): Promise<Rows> {
  const path = new URL(`${provider}/refusals.ts`, CONNECTORS).href;
  const { REFUSALS } = (await import(path)) as { REFUSALS: { rows: Rows } };
  return REFUSALS.rows;
}

const wordsOf = ({ means: _, ...columns }: Rows[number]) =>
  Object.values(columns).flatMap((words) => String(words).split(/\s+/));

const isAdvice = (advice: Advice | undefined) =>
  typeof advice === 'object'
    ? Number.isInteger(advice.laterHours) && advice.laterHours > 0
    : ['NEVER', 'REVOKED', 'NEW_DATA', 'AUTHENTICATE', 'NONE'].includes(advice ?? '');

describe('the advice of a decline', () => {
  const SHARED = ['port', 'kit', 'guards'];
  const folders = readdirSync(CONNECTORS, { withFileTypes: true }).filter((entry) => entry.isDirectory());

  it.each(folders.map(({ name }) => name).filter((name) => !SHARED.includes(name)))(
    'every decline in the refusal table of %s has an advice, chosen for its row',
    async (provider) => {
      const declines = (await rowsOf(provider)).filter(({ means }) => typeof means === 'object');
      expect(declines).not.toEqual([]);
      for (const row of declines)
        expect(isAdvice((row.means as DeclineReason).advice), wordsOf(row)[0]).toBe(true);
      const words = declines.flatMap((row) => (Object.keys(row).length === 2 ? wordsOf(row) : []));
      expect(new Set(words).size).toBe(words.length);
    },
  );

  it.each(Object.keys(FINAL))(
    'in the refusal table of %s, only a reason with which the provider itself forbids every other try is NEVER or REVOKED',
    async (provider) => {
      const rows = await rowsOf(provider);
      for (const advice of ['NEVER', 'REVOKED'] as const) {
        const found = rows
          .filter(({ means }) => typeof means === 'object' && means.advice === advice)
          .flatMap(wordsOf);
        expect(found.sort().join(' ')).toBe((FINAL[provider]?.[advice] ?? '').split(' ').sort().join(' '));
      }
    },
  );

  it.each(['04', '07', '12', '15', '41', '43', '46', '57', 'R0', 'R1', 'R3', 'r0'])(
    "after Visa's response code %s, the card is never tried again, anywhere",
    (code) => {
      expect(adviceOfScheme(code)).toBe(/^R/i.test(code) ? 'REVOKED' : 'NEVER');
      expect(isHard(declineByScheme(code))).toBe(true);
    },
  );

  it('our equivalent of a reason in ISO 8583 forbids no other try', () => {
    expect(declineBy('12', 'NONE')).toEqual({ iso8583Code: '12', advice: 'NONE' });
    expect(isHard(declineBy('12', 'NONE'))).toBe(false);
    expect(isHard(declineBy('05', 'NONE'))).toBe(false);
  });

  it.each([
    ['54', 'NEW_DATA'],
    ['82', 'NEW_DATA'],
    ['N7', 'NEW_DATA'],
    ['59', { laterHours: 24 }],
  ] as const)(
    'a decline with the response code %s does not fail over, but the card may be tried again',
    (code, advice) => {
      expect(declineByScheme(code)).toEqual({ iso8583Code: code, advice });
      expect(isHard(declineByScheme(code))).toBe(true);
    },
  );

  it.each(['05', '51', '61', '65', '91', '96'])(
    'a decline with the response code %s may fail over',
    (code) => {
      expect(isHard(declineByScheme(code))).toBe(false);
      expect(declineByScheme(code)).not.toHaveProperty('nowhereElse');
    },
  );

  it('a decline for lack of authentication does not fail over: another provider would decline the same request', () => {
    expect(isHard(declineByScheme('1A'))).toBe(true);
  });
});

const SOFT = declineBy('05', 'NONE');

describe("Mastercard's merchant advice codes", () => {
  it.each([
    ['01', 'NEW_DATA'],
    ['02', { laterHours: 72 }],
    ['03', 'NEVER'],
    ['04', 'NEW_DATA'],
    ['05', 'NONE'],
    ['21', 'REVOKED'],
    ['22', 'NONE'],
    ['24', { laterHours: 1 }],
    ['25', { laterHours: 24 }],
    ['26', { laterHours: 48 }],
    ['27', { laterHours: 96 }],
    ['28', { laterHours: 144 }],
    ['29', { laterHours: 192 }],
    ['30', { laterHours: 240 }],
    ['40', 'NONE'],
    ['41', 'NEW_DATA'],
    ['42', 'NEVER'],
    ['43', 'NONE'],
    ['99', 'NONE'],
    ['', 'NONE'],
  ])('the merchant advice code %j advises %j', (code, advice) => {
    const advised = withMerchantAdvice(SOFT, readMerchantAdvice(code));
    const waits = typeof advice === 'object';
    expect(advised).toEqual({ ...SOFT, advice, ...(waits && { nowhereElse: true }) });
  });

  it.each([
    ['01 : New account information available', '01', 'New account information available'],
    ['3', '03', 'Do not try again'],
    ['24: Retry after 1 hour', '24', 'Retry after 1 hour'],
    ['77', '77', ''],
    ['00', '', ''],
    ['7903', '', ''],
    ['03abc', '', ''],
    ['', '', ''],
  ])('the merchant advice code is read from %j', (text, merchantAdviceCode, merchantAdviceCodeMessage) => {
    expect(readMerchantAdvice(text)).toEqual({ merchantAdviceCode, merchantAdviceCodeMessage });
  });

  it('no merchant advice code allows a try that the scheme or the provider forbids for ever', () => {
    for (const code of ['04', 'R1']) {
      expect(withMerchantAdvice(declineByScheme(code), readMerchantAdvice('02'))).toEqual(
        declineByScheme(code),
      );
    }
  });
});
