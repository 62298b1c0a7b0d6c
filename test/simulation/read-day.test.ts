import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parseDay, readDay, SimulationError } from '#src/simulation/read-day.ts';
import { scenario } from './scenarios.ts';

const SMALL = scenario([
  '{ id: a, rates: { approval_percent: 90 } }',
  '{ id: b, rates: { approval_percent: 80 } }',
]);

function messageOf(text: string): string {
  try {
    parseDay(text, 'day.yaml');
  } catch (error) {
    expect(error).toBeInstanceOf(SimulationError);
    return (error as Error).message;
  }
  throw new Error('it was not refused');
}

it('the scenario in config/simulation.yaml can be read', () => {
  expect(readDay(join(import.meta.dirname, '../../config/simulation.yaml')).connections).toHaveLength(3);
  expect(parseDay(SMALL, 'day.yaml').connections.map(({ id }) => id)).toEqual(['a', 'b']);
});

it.each([
  ['payments: 4000', 'payments: 0', 'day.yaml:2: payments '],
  ['payments: 4000', 'payments: lots', 'day.yaml:2: payments '],
  ['payments: 4000', 'paymnts: 4000', 'day.yaml:2: paymnts is not known'],
  ['currency: USD', 'currency: USX', 'day.yaml:3: currency is not an ISO 4217 currency'],
  ['amount_from: 10', 'amount_from: 30', 'day.yaml:5: amount_to must be 30 to '],
  ['amount_to: 20', 'hours: [1, 2]', 'day.yaml:5: hours '],
  ['amount_to: 20', 'alike_percent: 101', 'day.yaml:5: alike_percent must be 0 to 100'],
  ['brand: VISA', 'brand: VIZA', 'day.yaml:8: cards[0].brand is none of VISA'],
  ['issuer_country: BR', 'issuer_country: XX', 'day.yaml:9: cards[1].issuer_country is not a country'],
  ['share: 1 ', 'share: 0 ', 'day.yaml:9: cards[1].share must be above 0'],
  ['id: b', 'id: a', 'day.yaml:12: connections[1].id is listed twice'],
  [
    '{ approval_percent: 80 }',
    '{ unknown_percent: 1 }',
    'day.yaml:12: connections[1].rates.approval_percent is needed',
  ],
  ['percent: 80 }', 'percent: 180 }', 'day.yaml:12: connections[1].rates.approval_percent must be 0 to 100'],
  [
    'percent: 80 }',
    'percent: 80 }, incidents: [{ from_hour: 5, to_hour: 4, rates: {} }]',
    'day.yaml:12: connections[1].incidents[0].to_hour must be 5 to 24',
  ],
  [
    'percent: 80 }',
    'percent: 80 }, cost: { fixed: -1 }',
    'day.yaml:12: connections[1].cost.fixed must be 0 to ',
  ],
  ['currency: USD', 'currency: [', 'day.yaml: '],
])('a fault in a scenario is reported with its line and field: %s → %s', (from, to, message) => {
  expect(SMALL).toContain(from);
  expect(messageOf(SMALL.replace(from, to))).toContain(message);
});

it('all faults of a scenario are reported at once, and so is a file that is not a scenario or cannot be read', () => {
  expect(messageOf(SMALL.replace('payments: 4000', '').replace('USD', 'USX')).split('\n')).toHaveLength(2);
  expect(messageOf('a text')).toContain('must be fields');
  expect(() => readDay('/nowhere.yaml')).toThrow('/nowhere.yaml cannot be read (ENOENT)');
});
