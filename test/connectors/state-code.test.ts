import { expect, it } from 'vitest';
import { hasStateCodes, stateCodeOf } from '#src/connectors/kit/state-code.ts';

it.each([
  ['California', 'US', 'CA'],
  ['california ', 'US', 'CA'],
  ['ca', 'US', 'CA'],
  ['US-CA', 'US', 'CA'],
  ['Washington', 'US', 'WA'],
  ['Washington, D.C.', 'US', 'DC'],
  ['Puerto Rico', 'US', 'PR'],
  ['Québec', 'CA', 'QC'],
  ['Quebec', 'CA', 'QC'],
  ['Colombie Britannique', 'CA', 'BC'],
  ['ON', 'CA', 'ON'],
  ['Ontario', 'US', undefined],
  ['Atlantis', 'US', undefined],
  ['', 'US', undefined],
  ['SP', 'BR', undefined],
])('the code of the state %j in %s is %s', (state, country, code) => {
  expect(stateCodeOf(state, country)).toBe(code);
});

it('only the states of the United States and Canada have codes here', () => {
  expect(['US', 'CA', 'BR', 'MX', ''].filter(hasStateCodes)).toEqual(['US', 'CA']);
});
