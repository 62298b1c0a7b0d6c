import { celEnv, isCelError, parse, plan } from '@bufbuild/cel';
import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type RoutingFacts, RoutingFactsSchema } from '#gen/payments/v1/routing_facts_pb.js';
import { compileCondition } from '#src/routing/condition.ts';
import { factValues } from '#src/routing/condition-facts.ts';
import { runs } from '../support/fixed-seed.ts';

/** A condition in our form, and in the form for a reference implementation of CEL, with amounts in ten-thousandths. */
type Pair = { readonly ours: string; readonly reference: string };

const same = (text: string): Pair => ({ ours: text, reference: text });
const join = (strings: TemplateStringsArray, ...parts: readonly Pair[]): Pair => ({
  ours: String.raw({ raw: strings }, ...parts.map((part) => part.ours)),
  reference: String.raw({ raw: strings }, ...parts.map((part) => part.reference)),
});

const COUNTRIES = ['BR', 'MX', 'US', ''];
const IINS = ['41111111', '411111', '52000000', ''];
// Outside the hours that daylight saving time skips on this machine, which the reference
// mishandles.
const TIMES = ['2026-01-15T05:30:15.250Z', '2026-07-31T23:59:59Z', '2026-12-31T12:00:00.001Z'];

const literal = (values: readonly string[]) =>
  fc.constantFrom(...values).map((value) => same(JSON.stringify(value)));
const operator = fc.constantFrom('==', '!=', '<', '<=', '>', '>=').map(same);
const number = fc.integer({ min: -2, max: 5 }).map((value) => same(String(value)));
const units = fc.oneof(
  fc.bigInt({ min: -20_000n, max: 20_000n }),
  fc.constantFrom(9_999_999_999_999_998n, 9_999_999_999_999_999n),
);
const amount = units.map((value) => ({ ours: decimal(value), reference: String(value) }));

/** Returns ten-thousandths as a decimal. */
function decimal(value: bigint): string {
  const digits = String(value < 0n ? -value : value).padStart(5, '0');
  return `${value < 0n ? '-' : ''}${digits.slice(0, -4)}.${digits.slice(-4)}`;
}

/** Generates an operation with its operands in either order. */
const compared = (left: fc.Arbitrary<Pair>, right: fc.Arbitrary<Pair>) =>
  fc
    .tuple(left, operator, right, fc.boolean())
    .map(([a, sign, b, turned]) => (turned ? join`${b} ${sign} ${a}` : join`${a} ${sign} ${b}`));
const within = (left: fc.Arbitrary<Pair>, element: fc.Arbitrary<Pair>) =>
  fc
    .tuple(left, fc.array(element, { minLength: 1, maxLength: 4 }))
    .map(([a, list]) => join`${a} in [${list.reduce((all, one) => join`${all}, ${one}`)}]`);
const fact = (...names: string[]) => fc.constantFrom(...names).map(same);

const leaf = fc.oneof(
  fact('capture', 'vaulted', 'true', 'false'),
  compared(fact('country', 'issuer_country', 'type'), literal(COUNTRIES)),
  compared(fact('country'), fact('issuer_country', '("B" + "R")')),
  within(fact('country', 'issuer_country'), literal(COUNTRIES)),
  compared(fact('installments', 'installments * 2', 'size(iin)'), number),
  within(fact('installments', 'installments + 1'), number),
  compared(fact('amount'), amount),
  within(fact('amount'), amount),
  fc
    .tuple(
      fact('iin', '(iin + "1")'),
      fact('contains', 'startsWith', 'endsWith', 'matches'),
      literal(['4', '11', '', '52']),
    )
    .map(([target, method, arg]) => join`${target}.${method}(${arg})`),
  literal(['^4[01]1*$', '(52)?0', '^$']).map((pattern) => join`iin.matches(${pattern})`),
  compared(
    fact(
      'getHours',
      'getMonth',
      'getDate',
      'getDayOfMonth',
      'getDayOfWeek',
      'getDayOfYear',
      'getMilliseconds',
    ).map((method) => join`time.${method}()`),
    fc.integer({ min: 0, max: 31 }).map((value) => same(String(value))),
  ),
  compared(
    fact('time - timestamp("2026-07-31T00:00:00Z")'),
    literal(['0s', '23h59m59s', '-1h', '1000000s']).map((text) => join`duration(${text})`),
  ),
  compared(
    fact('time', 'time + duration("12h")'),
    literal(TIMES).map((text) => join`timestamp(${text})`),
  ),
  // Evaluating these can fail.
  compared(fact('int(iin + "0")', '10 / (installments - 2)', 'installments % (installments - 1)'), number),
);

const { condition } = fc.letrec<{ condition: Pair }>((tie) => ({
  condition: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    leaf,
    fc.tuple(tie('condition'), tie('condition')).map(([a, b]) => join`(${a} && ${b})`),
    fc.tuple(tie('condition'), tie('condition')).map(([a, b]) => join`(${a} || ${b})`),
    tie('condition').map((a) => join`!(${a})`),
    fc.tuple(tie('condition'), tie('condition')).map(([a, b]) => join`(${a}) == (${b})`),
    fc
      .tuple(tie('condition'), tie('condition'), tie('condition'))
      .map(([a, b, c]) => join`(${a} ? ${b} : ${c})`),
    leaf.map((a) => join`["BR", "MX"].exists(one, one == country && ${a})`),
  ),
}));

const facts = fc.record({
  country: fc.constantFrom(...COUNTRIES),
  issuerCountry: fc.constantFrom(...COUNTRIES),
  type: fc.constantFrom('CARD', 'PIX'),
  amount: units.map((value) => ({ value: decimal(value) })),
  installments: fc.integer({ min: 0, max: 4 }),
  iin: fc.constantFrom(...IINS, 'x'),
  capture: fc.boolean(),
  vaulted: fc.boolean(),
  time: fc.constantFrom(...TIMES).map((time) => timestampFromDate(new Date(time))),
});

const environment = celEnv();

function referenceOutcome(text: string, message: RoutingFacts): boolean | 'error' {
  const { amount, time, installments, issuerCountry } = message;
  const outcome = plan(
    environment,
    parse(text),
  )({
    ...{ country: message.country, type: message.type, iin: message.iin, capture: message.capture },
    ...{ vaulted: message.vaulted, time, issuer_country: issuerCountry, installments: BigInt(installments) },
    amount: BigInt((amount?.value ?? '').replace('.', '')),
  } as never);
  if (typeof outcome === 'boolean') return outcome;
  expect(isCelError(outcome)).toBe(true);
  return 'error';
}

it('a condition has the same result as in another implementation of CEL, for any condition and facts', () => {
  const seen = new Set<boolean | 'error'>();
  fc.assert(
    fc.property(condition, facts, ({ ours, reference }, init) => {
      const message = create(RoutingFactsSchema, init);
      const expected = referenceOutcome(reference, message);
      const compiled = compileCondition(ours);
      const outcome = compiled.evaluate(factValues(message));
      expect(outcome instanceof Error ? 'error' : outcome).toBe(expected);
      expect(compiled.whyNot(message) === undefined).toBe(expected === true);
      seen.add(expected);
    }),
    { numRuns: runs(1500) },
  );
  expect(seen).toEqual(new Set([true, false, 'error']));
});
