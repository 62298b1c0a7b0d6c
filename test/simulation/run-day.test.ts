import { expect, it } from 'vitest';
import { parseCatalogue } from '#src/catalogue/read-catalogue.ts';
import { parseDay } from '#src/simulation/read-day.ts';
import { runDay } from '#src/simulation/run-day.ts';
import { strategiesOf } from '#src/simulation/strategies.ts';
import { outcomeOf } from '#src/simulation/summary.ts';
import { syntheticPayments } from '#src/simulation/synthetic-payments.ts';
import { scenario, simulate } from './scenarios.ts';

const GOOD = '{ id: good, rates: { approval_percent: 90, not_sent_percent: 1, unknown_percent: 1 } }';
const WORSE = '{ id: worse, rates: { approval_percent: 60 } }';

it('the same seed gives the same results, and another seed different ones', async () => {
  const text = scenario([GOOD, WORSE]);
  const [first, again, other] = [
    await simulate(text),
    await simulate(text),
    await simulate(text, { seed: 2 }),
  ];
  for (const choice of ['priority', 'split', 'success rate']) {
    expect(again(choice, true)).toEqual(first(choice, true));
  }
  expect(other('split')).not.toEqual(first('split'));
});

it('a payment has the same luck at a provider, whichever strategy sends it there', async () => {
  const day = parseDay(scenario([GOOD, WORSE]), 'test.yaml');
  const payments = syntheticPayments(day, 1);
  const met = new Map<string, Set<string>>();
  let attempts = 0;
  for (const { catalogue } of strategiesOf(day, undefined)) {
    for (const { payment, attempts: made } of (await runDay(day, 1, payments, catalogue)).ends) {
      attempts += made.length;
      for (const { connectionId, outcome } of made) {
        const place = `${payment.id} ${connectionId}`;
        met.set(place, (met.get(place) ?? new Set()).add(outcome));
      }
    }
  }
  expect(attempts).toBeGreaterThan(met.size * 3);
  expect([...met].filter(([, outcomes]) => outcomes.size > 1)).toEqual([]);
});

it('the circuit breaker keeps waiting times and unknown outcomes low when a provider is dead', async () => {
  const dead = '{ id: dead, rates: { approval_percent: 100, unknown_percent: 100 } }';
  const perfect = '{ id: perfect, rates: { approval_percent: 100 } }';
  // Enough payments to open the circuit soon: that takes 20 calls in 30 s.
  const text = scenario([dead, perfect]).replace('payments: 4000', 'payments: 120000');
  const day = parseDay(text, 'test.yaml');
  const payments = syntheticPayments(day, 1);
  const [priority] = strategiesOf(day, undefined);
  const { ends, openings } = await runDay(day, 1, payments, priority?.catalogue as never);
  const pending = ends.filter((end) => outcomeOf(end) === 'unknown');
  const approved = ends.filter((end) => outcomeOf(end) === 'approved');
  expect(openings).toBe(1);
  expect(pending.length).toBeGreaterThanOrEqual(20);
  expect(pending.length).toBeLessThan(60);
  expect(approved.length).toBe(payments.length - pending.length);
  expect(new Set(pending.map(({ waitedMs }) => waitedMs))).toEqual(new Set([10_000]));
  // An open circuit costs the other payments no time.
  expect(new Set(approved.map(({ waitedMs }) => waitedMs))).toEqual(new Set([300]));
});

it('success-rate routing beats priority when the first provider is the worse one', async () => {
  const result = await simulate(scenario([WORSE, GOOD]));
  expect(result('priority').approvedPercent).toBeGreaterThan(55);
  expect(result('priority').approvedPercent).toBeLessThan(65);
  expect(result('split').approvedPercent).toBeGreaterThan(result('priority').approvedPercent + 8);
  expect(result('success rate').approvedPercent).toBeGreaterThan(result('split').approvedPercent + 8);
});

it('a soft decline is tried elsewhere only with failover, and a hard one never', async () => {
  const declines = (hard: number) =>
    `{ id: declines, rates: { approval_percent: 0, hard_decline_percent: ${hard} } }`;
  const perfect = '{ id: perfect, rates: { approval_percent: 100 } }';
  const soft = await simulate(scenario([declines(0), perfect]));
  expect(soft('priority')).toMatchObject({ approvedPercent: 0, attemptsPerPayment: 1 });
  expect(soft('priority', true)).toMatchObject({ approvedPercent: 100, attemptsPerPayment: 2 });
  const hard = await simulate(scenario([declines(100), perfect]));
  expect(hard('priority', true)).toMatchObject({ approvedPercent: 0, attemptsPerPayment: 1 });
});

it('failover gains nothing when all providers decide alike', async () => {
  const alike = [GOOD, WORSE].map((connection) => connection.replace(/, (not_sent|unknown)_percent: 1/g, ''));
  const result = await simulate(scenario(alike, 'alike_percent: 100'));
  expect(result('priority', true).attemptsPerPayment).toBeGreaterThan(1.05);
  expect(result('priority', true).approvedPercent).toBe(result('priority').approvedPercent);
});

it('an incident shows in its hours only', async () => {
  const drops =
    '{ id: drops, rates: { approval_percent: 100 }, incidents: [{ from_hour: 3, to_hour: 5, rates: { approval_percent: 0 } }] }';
  const { approvedByHour } = (await simulate(scenario([drops])))('priority');
  expect(approvedByHour).toEqual(
    Array.from({ length: 24 }, (_, hour) => (hour === 3 || hour === 4 ? 0 : 100)),
  );
});

it('the cost is the sum of fees in percent of what the providers approved', async () => {
  const taken = (rates: string) => `{ id: a, rates: ${rates}, cost: { percent: 2, fixed: 0.3 } }`;
  const amounts = scenario([taken('{ approval_percent: 100 }')]).replace('amount_to: 20', 'amount_to: 10');
  expect((await simulate(amounts))('priority').costPercent).toBeCloseTo(5, 9);
  const nothing = scenario([taken('{ approval_percent: 100, not_sent_percent: 100 }')]);
  expect((await simulate(nothing))('priority')).toMatchObject({ costPercent: undefined, errorPercent: 100 });
});

const CATALOGUE = parseCatalogue(
  `
payment_method_types: [{ type: CARD, category: CARD, workflows: [DIRECT] }]
connections:
  - { id: one, provider_id: ONE, connector: sandbox, secrets_from_environment: { api_key: NOT_SET } }
  - { id: two, provider_id: TWO, connector: sandbox }
routes:
  - { id: 1, condition: card_brand == 'VISA', targets: [{ connection: one }] }
  - { id: 2, condition: country == 'BR', targets: [{ connection: two }] }
`,
  'catalogue.yaml',
);
const BEHAVIOUR = {
  one: '{ id: one, rates: { approval_percent: 100 } }',
  two: '{ id: two, rates: { approval_percent: 0 } }',
};

it('a catalogue’s routes are used, and its own choice is compared first', async () => {
  const result = await simulate(scenario([BEHAVIOUR.one, BEHAVIOUR.two]), { catalogue: CATALOGUE });
  const { approvedPercent, errorPercent } = result('as configured');
  expect(Math.abs(approvedPercent - 75)).toBeLessThan(3);
  expect(errorPercent).toBe(0);
  // Cards that no route takes count as errors.
  const text = scenario([BEHAVIOUR.one, BEHAVIOUR.two]).replace('issuer_country: BR', 'issuer_country: MX');
  const { errorPercent: withoutRoute } = (await simulate(text, { catalogue: CATALOGUE }))('as configured');
  expect(Math.abs(withoutRoute - 25)).toBeLessThan(3);
});

it('a connection that only the catalogue or only the scenario has is reported', async () => {
  await expect(simulate(scenario([BEHAVIOUR.one]), { catalogue: CATALOGUE })).rejects.toThrow(
    /may go to connection two \(by route 2\)/,
  );
  await expect(simulate(scenario([GOOD]), { catalogue: CATALOGUE })).rejects.toThrow(
    'connections[0].id is good, but the catalogue has only one, two',
  );
});
