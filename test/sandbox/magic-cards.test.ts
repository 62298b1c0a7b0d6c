import { expect, it } from 'vitest';
import { behaviourOf, MAGIC_CARDS, passesLuhn } from '#sandbox/magic-cards.ts';

for (const card of MAGIC_CARDS) {
  it(`${card.number} (${card.name}) passes Luhn's check and behaves as listed`, () => {
    expect(passesLuhn(card.number)).toBe(true);
    expect(behaviourOf(card.number)).toBe(card.behaviour);
  });
}

it('every number and name occurs once in the list of magic cards', () => {
  expect(new Set(MAGIC_CARDS.map(({ number }) => number)).size).toBe(MAGIC_CARDS.length);
  expect(new Set(MAGIC_CARDS.map(({ name }) => name)).size).toBe(MAGIC_CARDS.length);
});

it("a number that is not listed is approved, unless it fails Luhn's check", () => {
  expect(behaviourOf('4111111111111111')).toEqual({ kind: 'approve' });
  expect(behaviourOf('378282246310005')).toEqual({ kind: 'approve' });
  expect(behaviourOf('4111111111111112')).toEqual({ kind: 'decline', responseCode: '14' });
});
