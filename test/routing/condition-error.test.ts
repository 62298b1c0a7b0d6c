import { expect, it } from 'vitest';
import { ConditionError, compileCondition } from '#src/routing/condition.ts';

const DOMAINS = new Map([
  ['type', new Set(['CARD', 'PIX'])],
  ['country', new Set(['BR', 'MX', 'US'])],
]);

/** What is wrong with a condition, as `line:column message`; undefined when nothing is. */
function faultOf(text: string): string | undefined {
  try {
    compileCondition(text, { domains: DOMAINS });
    return undefined;
  } catch (error) {
    if (!(error instanceof ConditionError)) throw error;
    return `${error.line}:${error.column} ${error.message}`;
  }
}

const NO_AMOUNT =
  'amount can only be compared (== != < <= > >= in) with numbers as they are written, such as 100 or 99.90';

it.each([
  // Syntax.
  ['', '1:1 ends too early'],
  ['capture &&', '1:9 cannot be read from here: &&'],
  ['country = "BR"', '1:9 cannot be read from here: = "BR" (equality is written ==)'],
  ['capture\n  and vaulted', '2:3 cannot be read from here: and vaulted'],
  ['"\\ud800" == country', '1:1 surrogate code points are not allowed'],
  ['package == "x"', '1:1 reserved identifier'],
  // Names.
  ['cuntry == "BR"', '1:1 unknown name cuntry; did you mean country?'],
  [
    'capture &&\n  // a comment\n  instalments == 1',
    '3:3 unknown name instalments; did you mean installments?',
  ],
  [
    'x',
    '1:1 unknown name x; there is account_id, country, amount, currency, type, category, workflow, installments, ' +
      'card_brand, iin, issuer_country, issuer_type, capture, has_airline, has_order, vaulted, merchant_reference, time',
  ],
  ['constructor', expect.stringContaining('1:1 unknown name constructor; there is account_id')],
  ['iin.startWith("4")', '1:5 unknown function startWith; did you mean startsWith?'],
  ['iin.constructor("4")', expect.stringContaining('1:5 unknown function constructor; there is contains')],
  ['[1].exists(country, true)', '1:5 country is a fact: take another name'],
  // Types.
  ['country', '1:1 must be bool, and is string'],
  ['capture ? 1 : 2', '1:1 must be bool, and is int'],
  ['capture && !country', '1:13 must be bool, and is string'],
  ['capture &&\n installments', '2:2 must be bool, and is int'],
  [
    'country   < 5',
    '1:11 there is no string < int; there is int < int, string < string, timestamp < timestamp, duration < duration',
  ],
  ['(capture + 1) == 2', expect.stringContaining('1:10 there is no bool + int; there is int + int')],
  ['country == 1', expect.stringContaining('1:9 there is no string == int; there is bool == bool')],
  ['time == "2026"', expect.stringContaining('1:6 there is no timestamp == string; there is')],
  ['installments in ["1"]', expect.stringContaining('1:14 there is no int in list(string); there is')],
  [
    'country ? true : false',
    expect.stringContaining('1:1 there is no string ? bool : bool; there is bool ? bool'),
  ],
  ['-country == "x"', '1:1 there is no -string; there is -int'],
  [
    'country.getHours() == 1',
    expect.stringContaining('there is no string.getHours(); there is timestamp.getHours()'),
  ],
  ['iin.contains(4)', '1:5 there is no string.contains(int); there is string.contains(string)'],
  ['size(country, 1) == 1', '1:1 there is no size(string, int); there is size(string), string.size()'],
  ['[1, "a"].exists(x, x == 1)', '1:5 must be int, and is string'],
  ['[1, 2].exists(x, x)', '1:18 must be bool, and is int'],
  ['country.exists(x, true)', '1:1 must be a list, and is string'],
  ['installments > 1.5', expect.stringContaining('there is no int > double')],
  ['installments == 9223372036854775808', '1:17 is more than 64 bits hold'],
  // What is not supported.
  ['{"a": 1} == {"a": 1}', '1:1 maps and messages are not supported'],
  ['time.seconds > 1', '1:6 there are no fields, such as .seconds'],
  ['[country][0] == "BR"', '1:10 [] is not supported'],
  ['[1].map(x, x) == [1]', '1:5 map and filter are not supported'],
  ['country in []', '1:12 a list needs a value'],
  ['country in [["BR"]]', '1:13 a list cannot hold list(string)'],
  ['1u == 1u', '1:1 null, bytes and unsigned numbers are not supported'],
  ['country == null', '1:12 null, bytes and unsigned numbers are not supported'],
  // Literals.
  ['iin.matches("4(")', '1:13 is no pattern of RE2: error parsing regexp: missing closing ): `4(`'],
  ['iin.matches("(a{1000}){1000}")', expect.stringContaining('1:13 is no pattern of RE2')],
  [`iin.matches("${'4'.repeat(101)}")`, '1:13 is longer than the 100 characters that a pattern may have'],
  ['["BR"].all(a, ["MX"].all(b, a == b))', '1:22 a loop within a loop is not supported'],
  ['iin.matches(country)', '1:13 the pattern must be written here'],
  ['time.getHours("America/Sao_Paolo") < 6', '1:15 there is no time zone "America/Sao_Paolo"'],
  ['time.getHours(country) < 6', '1:15 the time zone must be written here'],
  ['time < timestamp("2026-13-01")', expect.stringContaining('1:8 Failed to parse timestamp')],
  ['time - time < duration("1 hour")', '1:15 Failed to parse duration: invalid syntax'],
  ['installments > 1 / 0', '1:18 int divide by zero'],
  // Amounts.
  ['amount', `1:1 ${NO_AMOUNT}`],
  ['amount > "100"', `1:10 ${NO_AMOUNT}`],
  ['amount > installments', `1:10 ${NO_AMOUNT}`],
  ['amount > 1e3', `1:10 ${NO_AMOUNT}`],
  ['amount == amount', `1:11 ${NO_AMOUNT}`],
  ['amount * 2 > 100', `1:8 ${NO_AMOUNT}`],
  ['string(amount) == "1"', `1:1 ${NO_AMOUNT}`],
  ['[amount] == [1]', `1:2 ${NO_AMOUNT}`],
  ['amount in [1, "2"]', `1:15 ${NO_AMOUNT}`],
  ['[1, 2].exists(x, amount == x)', `1:28 ${NO_AMOUNT}`],
  ['capture && amount', `1:12 ${NO_AMOUNT}`],
  ['amount > 0.00001', '1:10 no amount has more than 4 decimals'],
  ['amount < 922337203685477.5808', '1:10 no amount is as large'],
  ['amount < 922337203685477.5807', undefined],
  // Closed sets of values.
  ['type == "CRAD"', '1:9 type is never "CRAD"; did you mean "CARD"?'],
  ['"card" != type', '1:1 type is never "card"'],
  ['country in ["BR", "UK"]', '1:19 country is never "UK"'],
  ['currency == "CRAD" && type == "PIX"', undefined],
])('%j: %j', (text, expected) => {
  const fault = faultOf(text);
  if (expected === undefined) expect(fault).toBeUndefined();
  else expect(fault).toEqual(expected);
});

it('refuses what is nested too deeply, and takes what only looks so', () => {
  expect(faultOf('('.repeat(4096))).toBe('1:1 is nested too deeply');
  expect(faultOf(`${'!('.repeat(1300)}capture${')'.repeat(1300)}`)).toBe('1:1 is nested too deeply');
  expect(faultOf(`capture${' == true'.repeat(101)}`)).toContain('is nested more than 100 deep');
  expect(faultOf(`${'!('.repeat(98)}capture${')'.repeat(98)}`)).toBeUndefined();
  // Were each depth checked twice, these would not end.
  expect(faultOf(`${'true in ['.repeat(48)}capture${']'.repeat(48)}`)).toBeUndefined();
  expect(faultOf(`${'vaulted || (capture && ('.repeat(48)}capture${'))'.repeat(48)}`)).toBeUndefined();
  expect(faultOf(`${'!'.repeat(4000)}capture`)).toBeUndefined();
  expect(faultOf(`${'('.repeat(90)}capture${')'.repeat(90)}`)).toBeUndefined();
  expect(faultOf(`capture${' || vaulted'.repeat(350)}`)).toBeUndefined();
});
