import { expect, it } from 'vitest';
import { withClockAhead } from '../../support/process-clock.ts';
import { lookUp, openedForEach } from '../under-test.ts';
import { openMercadoPago, sentAway } from './mercado-pago-under-test.ts';

const under = openedForEach(openMercadoPago);

it('a preference that was closed early has expired once all its payments are sure to be listed', async () => {
  const { attempt, reference } = await sentAway(under);
  await lookUp(under, attempt, reference, { close: true });
  const minutesLater = (minutes: number, close = false) =>
    lookUp(under, attempt, reference, { ageMs: minutes * 60_000, close });
  for (const close of [false, true]) expect(await minutesLater(9, close)).toMatchObject({ kind: 'unknown' });
  const asked = under.fake.requests.length;
  for (const close of [false, true]) {
    // The result is the same however far the process's clock is behind.
    expect(await withClockAhead(-3_600_000, () => minutesLater(11, close))).toMatchObject({
      kind: 'expired',
      reference,
    });
  }
  // Closing the preference again would move its end.
  expect(under.fake.requests.slice(asked).map(({ method }) => method)).not.toContain('PUT');
});

it.each([
  ['does not say that it expires', { expires: false, expiration_date_to: '2020-01-01T00:00:00.000Z' }],
  ['does not say when it expires', { expiration_date_to: undefined }],
  ['does not say when it was made', { date_created: undefined }],
])('a preference that %s can still be paid, whatever its age', async (_what, fields) => {
  const { attempt, reference } = await sentAway(under);
  Object.assign(under.fake.preference(), fields);
  const ageMs = 30 * 86_400_000;
  expect(await lookUp(under, attempt, reference, { ageMs })).toMatchObject({ kind: 'awaits_payer' });
});

it("a preference that was closed early raises an alarm if it is another payment's", async () => {
  const { attempt, reference } = await sentAway(under);
  await lookUp(under, attempt, reference, { close: true });
  Object.assign(under.fake.preference(), { external_reference: 'theirs' });
  expect(await lookUp(under, attempt, reference, { ageMs: 3_600_000 })).toMatchObject({
    kind: 'unknown',
    alarm: true,
  });
});

it('a preference is not closed, which could move its end, while its own end cannot be read', async () => {
  const { attempt, reference } = await sentAway(under);
  under.fake.lose(/^GET .checkout/, 'after');
  expect(await lookUp(under, attempt, reference, { close: true })).toMatchObject({ kind: 'unknown' });
  expect(under.fake.requests.map(({ method }) => method)).not.toContain('PUT');
});
