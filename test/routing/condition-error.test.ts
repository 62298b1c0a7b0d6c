import { expect, it } from 'vitest';
import { compileCondition } from '#src/routing/condition.ts';
import { ConditionError } from '#src/routing/condition-error.ts';

const DOMAINS = new Map([
  ['type', new Set(['CARD', 'PIX'])],
  ['country', new Set(['BR', 'MX', 'US'])],
]);

/** Returns the fault of a condition as `line:column message`, or undefined if it has none. */
function faultOf(text: string): string | undefined {
  try {
    compileCondition(text, DOMAINS);
    return undefined;
  } catch (error) {
    if (!(error instanceof ConditionError)) throw error;
    return `${error.line}:${error.column} ${error.message}`;
  }
}

const NO_AMOUNT =
  'amount can only be compared (== != < <= > >= in) with number literals such as 100 or 99.90';

it.each([
  // Syntax.
  ['', '1:1 ends unexpectedly'],
  ['capture &&', '1:11 ends unexpectedly'],
  ['country = "BR"', '1:9 has a syntax error at: = "BR" (equality is written ==)'],
  ['capture\n  and vaulted', '2:3 has a syntax error at: and vaulted'],
  ['"\\ud800" == country', '1:2 Invalid Unicode surrogate: \\ud800'],
  ['package == "x"', '1:1 Reserved identifier: package'],
  ['amount == .5', '1:11 has a syntax error at: .5'],
  // Names.
  ['cuntry == "BR"', '1:1 unknown name cuntry; did you mean country?'],
  [
    'capture &&\n  // a comment\n  instalments == 1',
    '3:3 unknown name instalments; did you mean installments?',
  ],
  [
    'x',
    '1:1 unknown name x; known names: account_id, country, amount, currency, type, category, workflow, installments, ' +
      'card_brand, iin, issuer_country, issuer_type, capture, has_airline, has_order, vaulted, merchant_reference, time',
  ],
  ['constructor', expect.stringContaining('1:1 unknown name constructor; known names: account_id')],
  ['iin.startWith("4")', '1:5 unknown function startWith; did you mean startsWith?'],
  [
    'iin.constructor("4")',
    expect.stringContaining('1:5 unknown function constructor; known functions: contains'),
  ],
  ['[1].exists(country, true)', '1:12 country is the name of a fact; use another name'],
  ['[1].exists(x)', expect.stringContaining('1:12 unknown name x; known names: account_id')],
  ['type_ == "CARD"', '1:1 unknown name type_; did you mean type?'],
  ['string == string', expect.stringContaining('1:1 unknown name string')],
  ['google == google', expect.stringContaining('1:1 unknown name google')],
  ['dyn(country) == 1', expect.stringContaining('1:1 unknown function dyn')],
  ['int_(iin) == 1', '1:1 unknown function int_; did you mean int?'],
  // Types.
  ['country', '1:1 must be bool, but is string'],
  ['capture ? 1 : 2', '1:1 must be bool, but is int'],
  ['capture && !country', '1:12 uses an unsupported operation: !string'],
  ['capture &&\n installments', '2:2 must be bool, but is int'],
  ['country   < 5', '1:1 uses an unsupported operation: string < int'],
  ['(capture + 1) == 2', '1:2 uses an unsupported operation: bool + int'],
  ['capture && country == 1', '1:12 uses an unsupported operation: string == int'],
  ['time == "2026"', '1:1 uses an unsupported operation: Timestamp == string'],
  ['installments in ["1"]', '1:1 uses an unsupported operation: int in list<string>'],
  ['country ? true : false', "1:1 Ternary condition must be bool, got 'string'"],
  ['-country == "x"', '1:1 uses an unsupported operation: -string'],
  ['country.getHours() == 1', '1:1 uses an unsupported operation: string.getHours(string)'],
  ['iin.contains(4)', '1:1 uses an unsupported operation: string.contains(int)'],
  ['int(installments) == 1', '1:1 uses an unsupported operation: int(int)'],
  ['size(country, 1) == 1', '1:1 uses an unsupported operation: size(string, int)'],
  [
    '[1, "a"].exists(x, x == 1)',
    "1:5 List elements must have the same type, expected type 'int' but found 'string'",
  ],
  ['[1, 2].exists(x, x)', "1:18 exists(var, predicate) predicate must return bool, got 'int'"],
  ['country.exists(x, true)', expect.stringContaining("1:1 Expression of type 'string' cannot be range")],
  ['installments == 1.5', '1:1 uses an unsupported operation: int == double'],
  // Unsupported features.
  ['{"a": 1} == {"a": 1}', '1:1 fields, indexes and maps are not supported'],
  ['time.seconds > 1', '1:1 fields, indexes and maps are not supported'],
  ['[country][0] == "BR"', '1:1 fields, indexes and maps are not supported'],
  ['[1].map(x, x) == [1]', expect.stringContaining('1:5 unknown function map; known functions: contains')],
  ['cel.bind(x, 1, x == 1)', expect.stringContaining('1:5 unknown function bind')],
  ['has(country.x)', expect.stringContaining('1:1 unknown function has')],
  ['country in [["BR"]]', '1:1 uses an unsupported operation: string in list<list<string>>'],
  ['country == null', '1:1 uses an unsupported operation: string == null'],
  // Literals.
  ['iin.matches("4(")', '1:13 is not a valid pattern of RE2: error parsing regexp: missing closing ): `4(`'],
  ['iin.matches("(a{1000}){1000}")', expect.stringContaining('1:13 is not a valid pattern of RE2')],
  [`iin.matches("${'4'.repeat(101)}")`, '1:13 is not a valid pattern of RE2: longer than 100 characters'],
  ['["BR"].all(a, ["MX"].all(b, a == b))', '1:26 nested loops are not supported'],
  ['iin.matches(country)', '1:13 the pattern of RE2 must be a string literal'],
  [
    'time.getHours("America/Sao_Paolo") < 6',
    '1:15 is not a valid time zone: must be an IANA name such as America/Bogota, or an offset such as -05:00',
  ],
  ['time.getHours(country) < 6', '1:15 the time zone must be a string literal'],
  ['time < timestamp("2026-13-01")', '1:8 timestamp() needs an RFC 3339 time'],
  ['time - time < duration("1 hour")', '1:15 Invalid duration string: 1 hour'],
  ['installments > 1 / 0', '1:16 division by zero'],
  // Amounts.
  ['amount', `1:1 ${NO_AMOUNT}`],
  ['amount > "100"', `1:10 ${NO_AMOUNT}`],
  ['amount > installments', `1:10 ${NO_AMOUNT}`],
  ['amount > 1e3', `1:10 ${NO_AMOUNT}`],
  ['amount == amount', `1:11 ${NO_AMOUNT}`],
  ['amount * 2 > 100', `1:1 ${NO_AMOUNT}`],
  ['string(amount) == "1"', `1:8 ${NO_AMOUNT}`],
  ['[amount] == [1]', `1:2 ${NO_AMOUNT}`],
  ['amount in [1, "2"]', `1:15 ${NO_AMOUNT}`],
  ['[1, 2].exists(x, amount == x)', `1:28 ${NO_AMOUNT}`],
  ['capture && amount', `1:12 ${NO_AMOUNT}`],
  ['amount > 0.00001', '1:10 an amount has at most 4 decimal places'],
  ['amount > 5u', `1:10 ${NO_AMOUNT}`],
  ['amount < 922337203685477.5808', undefined],
  // Fields with a closed set of values.
  ['type == "CRAD"', '1:9 type is never "CRAD"; did you mean CARD?'],
  ['"card" != type', '1:1 type is never "card"'],
  ['country in ["BR", "UK"]', '1:19 country is never "UK"'],
  ['currency == "CRAD" && type == "PIX"', undefined],
])('the condition %j has the fault %j', (text, expected) => {
  const fault = faultOf(text);
  if (expected === undefined) expect(fault).toBeUndefined();
  else expect(fault).toEqual(expected);
});

it('a condition nested too deeply for the parser or the stack is refused', () => {
  expect(faultOf('('.repeat(4096))).toBe('1:251 is too long or nested too deeply');
  expect(faultOf(`${'!('.repeat(1300)}capture${')'.repeat(1300)}`)).toBe(
    '1:501 is too long or nested too deeply',
  );
  expect(faultOf(`${'!'.repeat(100_000)}capture`)).toBe('1:1 is nested too deeply');
});

it('long conditions are accepted', () => {
  expect(faultOf(`${'!('.repeat(98)}capture${')'.repeat(98)}`)).toBeUndefined();
  expect(faultOf(`${'('.repeat(90)}capture${')'.repeat(90)}`)).toBeUndefined();
  expect(faultOf(`capture${' || vaulted'.repeat(350)}`)).toBeUndefined();
  // If each depth were checked twice, these would take exponential time.
  expect(faultOf(`${'true in ['.repeat(48)}capture${']'.repeat(48)}`)).toBeUndefined();
  expect(faultOf(`${'vaulted || (capture && ('.repeat(48)}capture${'))'.repeat(48)}`)).toBeUndefined();
});
