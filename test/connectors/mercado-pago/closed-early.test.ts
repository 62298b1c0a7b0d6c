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
  expect(await minutesLater(9)).toMatchObject({ kind: 'unknown' });
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
