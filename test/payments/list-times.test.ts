import { expect, it } from 'vitest';
import { firstTime, timeAfter } from '#src/payments/read/list-times.ts';

it.each([
  ['', undefined],
  ['2026-01-31', '2026-01-31T00:00:00.000000Z'],
  ['2026-01-31T09:08:07.000042Z', '2026-01-31T09:08:07.000042Z'],
])('a list from "%s" begins at its first moment', (text, first) => {
  expect(firstTime('created_from', text)).toBe(first);
});

it.each([
  ['', undefined],
  ['2026-02-28', '2026-03-01T00:00:00.000000Z'],
  ['2026-01-31T09:08:07Z', '2026-01-31T09:08:07.000001Z'],
  ['2026-01-31T09:08:07.000041999Z', '2026-01-31T09:08:07.000042Z'],
  ['2026-01-31T09:08:07.2 02:00', '2026-01-31T07:08:07.200001Z'],
  ['2026-12-31T23:59:59.999999Z', '2027-01-01T00:00:00.000000Z'],
  ['9999-12-30', '9999-12-31T00:00:00.000000Z'],
  ['9999-12-31T23:59:59.999998Z', '9999-12-31T23:59:59.999999Z'],
  ['9999-12-31T23:59:59.999999Z', undefined],
  ['9999-12-31', undefined],
])('a list to "%s" ends just after it', (text, after) => {
  expect(timeAfter('created_to', text)).toBe(after);
});
