import { afterEach, beforeEach, expect, it } from 'vitest';
import { lookUp } from '../under-test.ts';
import { type MercadoPagoUnderTest, openMercadoPago, sentAway } from './mercado-pago-under-test.ts';

let under: MercadoPagoUnderTest;
beforeEach(async () => {
  under = await openMercadoPago();
});
afterEach(() => under.close());

it('a preference that was closed before its time has expired once all its payments are certainly listed', async () => {
  const { attempt, reference } = await sentAway(under);
  await lookUp(under, attempt, reference, { close: true });
  const preference = under.fake.preference();
  const closedAgo = (minutes: number) => {
    preference.expiration_date_to = new Date(Date.now() - minutes * 60_000).toISOString();
  };
  closedAgo(10);
  expect(await lookUp(under, attempt, reference)).toMatchObject({ kind: 'unknown' });
  closedAgo(12);
  const asked = under.fake.requests.length;
  for (const close of [false, true]) {
    expect(await lookUp(under, attempt, reference, { close })).toMatchObject({
      kind: 'expired',
      reference,
    });
  }
  // Closing it again would move its end.
  expect(under.fake.requests.slice(asked).map(({ method }) => method)).not.toContain('PUT');
});
