import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { describe, expect, it } from 'vitest';
import { type RoutingFacts, RoutingFactsSchema } from '#gen/payments/v1/routing_facts_pb.js';
import { compileCondition } from '#src/routing/condition.ts';
import { factValues } from '#src/routing/condition-facts.ts';

const factsOf = (facts: MessageInitShape<typeof RoutingFactsSchema>) => create(RoutingFactsSchema, facts);
/** Evaluates a condition for facts. @returns the result, or the message of an error. */
function outcomeOf(text: string, facts: RoutingFacts): boolean | string {
  const outcome = compileCondition(text).evaluate(factValues(facts));
  return outcome instanceof Error ? outcome.message : outcome;
}

const at = (time: string) => timestampFromDate(new Date(time));
const card = factsOf({
  accountId: 'a-1',
  country: 'BR',
  amount: { value: '3000.00' },
  currency: 'BRL',
  type: 'CARD',
  category: 'CARD',
  workflow: 'DIRECT',
  installments: 3,
  cardBrand: 'VISA',
  iin: '41111111',
  issuerCountry: 'US',
  issuerType: 'CREDIT',
  capture: true,
  hasOrder: true,
  merchantReference: 'web/2026-5',
  // A Sunday; in São Paulo, 22:30 on the day before.
  time: at('2026-03-01T01:30:15.250Z'),
});

it.each([
  ['country == "BR" && type == "CARD"', true],
  ['country == "BR" && type == "PIX"', false],
  ['country != "BR" || issuer_country != country', true],
  ['"BR" == country', true],
  ['country in ["MX", "BR"]', true],
  ['country in ["MX", "AR"]', false],
  ['!(country in ["MX", "AR"])', true],
  ['currency < "BRM" && currency >= "BRL"', true],
  ['capture', true],
  ['vaulted', false],
  ['!vaulted && has_order && !has_airline', true],
  ['capture == true && vaulted != true', true],
  ['vaulted ? country == "MX" : country == "BR"', true],
  ['installments > 1', true],
  ['1 < installments && 3 >= installments', true],
  ['installments in [1, 2]', false],
  ['installments == 9223372036854775807', false],
  [
    'installments * 2 + 1 == 7 && installments % 2 == 1 && installments / 2 == 1 && -installments == 1 - 4',
    true,
  ],
  ['iin.startsWith("4111") && iin.endsWith("11") && iin.contains("1111")', true],
  ['iin.startsWith("5")', false],
  ['iin.matches("^4[0-9]{7}$")', true],
  ['iin.matches("^5[1-5]")', false],
  ['(iin + "x").matches("1x$")', true],
  ['size(merchant_reference) == 10 && merchant_reference.size() > 9', true],
  ['int(iin) >= 41000000 && int(iin) < 42000000', true],
  ['string(installments) + "x" == "3x" && string(capture) == "true"', true],
  ['["web/", "app/"].exists(prefix, merchant_reference.startsWith(prefix))', true],
  ['["web/", "app/"].all(prefix, merchant_reference.startsWith(prefix))', false],
  ['["w", "web/", "app/"].exists_one(prefix, merchant_reference.startsWith(prefix))', false],
  ['[1, 2].exists(x, x + 1 == installments && amount > 2999.99)', true],
  ['time.getHours() == 1 && time.getMinutes() == 30 && time.getSeconds() == 15', true],
  ['time.getMilliseconds() == 250 && time.getMilliseconds("Asia/Kolkata") == 250', true],
  // CEL counts months, days of the year and getDayOfMonth from 0, and getDate from 1. Sunday is 0.
  ['time.getFullYear() == 2026 && time.getMonth() == 2 && time.getDate() == 1', true],
  ['time.getDayOfMonth() == 0 && time.getDayOfWeek() == 0 && time.getDayOfYear() == 59', true],
  ['time.getHours("America/Sao_Paulo") == 22 && time.getMonth("America/Sao_Paulo") == 1', true],
  ['time.getDate("America/Sao_Paulo") == 28 && time.getDayOfWeek("America/Sao_Paulo") == 6', true],
  ['time.getHours("Asia/Kolkata") == 7 && time.getMinutes("Asia/Kolkata") == 0', true],
  ['time.getHours("+02:00") + 0 == 3', true],
  ['time >= timestamp("2026-03-01T00:00:00Z") && time < timestamp("2026-04-01T00:00:00Z")', true],
  ['time - timestamp("2026-03-01T00:00:00Z") < duration("1h")', false],
  ['time + duration("30m") == timestamp("2026-03-01T02:00:15.250Z")', true],
  ['// Only cards.\n  (((type == "CARD"))) // and\n  && /*no*/', undefined],
  ['// Only cards.\n  (((type == "CARD"))) // and\n  && capture // captured\n', true],
  ["country == 'BR' && merchant_reference == r'web/2026-5' && \"\\u0042R\" == country", true],
  ['true', true],
])('the condition %s is %s', (text, expected) => {
  if (expected === undefined) expect(() => compileCondition(text)).toThrow('has a syntax error');
  else expect(outcomeOf(text, card)).toBe(expected);
});

it('time zones are evaluated with their daylight saving time', () => {
  const evening = 'time.getHours("America/New_York") == 20';
  expect(outcomeOf(evening, factsOf({ time: at('2026-01-15T01:00:00Z') }))).toBe(true);
  expect(outcomeOf(evening, factsOf({ time: at('2026-07-15T01:00:00Z') }))).toBe(false);
  expect(outcomeOf(evening, factsOf({ time: at('2026-07-15T00:00:00Z') }))).toBe(true);
});

it.each([
  ['amount == 0.3', '0.30', true],
  ['amount == 0.3', '0.3000', true],
  ['amount == 0.3', '0.3001', false],
  ['amount > 0.1', '0.10', false],
  ['amount < 1.10', '1.0999', true],
  ['amount >= 99.90', '99.9', true],
  ['amount == 3000', '3000.00', true],
  ['3000.01 > amount', '3000.00', true],
  ['amount != 3000.0', '3000', false],
  ['amount > -0.0001', '0.00', true],
  ['amount < -0.5', '-0.51', true],
  ['amount == 0x10', '16', true],
  // The first three amounts are equal as doubles.
  ['amount == 999999999999.9999', '999999999999.9999', true],
  ['amount == 999999999999.9999', '999999999999.9998', false],
  ['amount <= 999999999999.9998', '999999999999.9999', false],
  ['amount < 1000000000000', '999999999999.9999', true],
  ['amount in [ 1.10, 2,\n 0.3000 ]', '0.30', true],
  ['amount in [1.10, 2]', '1.1001', false],
  ['(amount < 10.5) == (country == "")', '10.4999', true],
  ['[1].exists(x, x == 1 && amount == 10.5)', '10.50', true],
])('amounts are compared exactly: %s with %s', (text, value, expected) => {
  expect(outcomeOf(text, factsOf({ amount: { value } }))).toBe(expected);
});

describe('the explanation of a condition', () => {
  it.each([
    ['country == "US" && type == "PIX"', 'country == "US" does not hold (country is "BR")'],
    ['type == "CARD" && amount < 100.5', 'amount < 100.5 does not hold (amount is 3000.00)'],
    [
      '(capture && (installments == 1 || currency == "USD"))',
      'installments == 1 || currency == "USD" does not hold (installments is 3, currency is "BRL")',
    ],
    ['!capture', '!capture does not hold (capture is true)'],
    ['false', 'false does not hold'],
    [
      '["app/"].exists(p, merchant_reference.startsWith(p))',
      '["app/"].exists(p, merchant_reference.startsWith(p)) does not hold (merchant_reference is "web/2026-5")',
    ],
    ['time.getHours() == 5', 'time.getHours() == 5 does not hold (time is 2026-03-01T01:30:15.250Z)'],
    ['1 / (installments - 3) == 1', 'cannot be evaluated: division by zero'],
    // The conjunction is false, whatever its first part is.
    ['1 / (installments - 3) == 1 && vaulted', 'vaulted does not hold (vaulted is false)'],
    ['country == "BR"', undefined],
  ])('the explanation of %s names the part that fails', (text, expected) => {
    expect(compileCondition(text).whyNot(card)).toBe(expected);
  });
});

it.each(['', '0x10', ' 5', '5.0', '1e3', '9'.repeat(19)])('int() refuses the string %j', (text) => {
  const condition = 'int(merchant_reference) >= 0';
  expect(outcomeOf(condition, factsOf({ merchantReference: text }))).toBe('int() needs a whole number');
  expect(outcomeOf(condition, factsOf({ merchantReference: '17' }))).toBe(true);
});

it.each(['', '2026-03-01', '2026-03-01T00:00:00.000', 'March 1, 2026 10:00:00', '2026-02-30T00:00:00+25:00'])(
  'timestamp() refuses %j, which is invalid or depends on the local time zone',
  (text) => {
    const condition = 'time > timestamp(merchant_reference)';
    expect(
      outcomeOf(condition, factsOf({ time: at('2026-03-02T00:00:00Z'), merchantReference: text })),
    ).toMatch('needs an RFC 3339 time');
  },
);

it('a condition that cannot be evaluated reports why', () => {
  const brazil = factsOf({ country: 'BR' });
  expect(outcomeOf('amount > 1', brazil)).toBe('uses an unknown fact');
  expect(outcomeOf('amount > 1', factsOf({ amount: { value: '1e3' } }))).toBe('uses an unknown fact');
  expect(outcomeOf('time.getHours() > 1', brazil)).toBe('uses an unknown fact');
  expect(outcomeOf('int(country) == 1', brazil)).toBe('int() needs a whole number');
  expect(outcomeOf('10 / installments == 1', brazil)).toBe('division by zero');
});

it('one operand may decide the result even if the other cannot be evaluated', () => {
  const brazil = factsOf({ country: 'BR' });
  expect(outcomeOf('amount > 1 || country == "BR"', brazil)).toBe(true);
  expect(outcomeOf('country == "BR" || amount > 1', brazil)).toBe(true);
  expect(outcomeOf('amount > 1 && country == "MX"', brazil)).toBe(false);
});
