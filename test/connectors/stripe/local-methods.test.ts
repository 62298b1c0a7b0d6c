import { describe, expect, it } from 'vitest';
import { expiryDays, localMethodsOf, methodsOf } from '#src/connectors/stripe/local-methods.ts';
import { expiryOf } from '#src/payments/method/local-method.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 1_440 * MINUTE_MS;
const METHODS = localMethodsOf(methodsOf({}));
const ZONED = [
  ['BOLETO', 'boleto', 'America/Sao_Paulo'],
  ['OXXO', 'oxxo', 'America/Mexico_City'],
] as const;

/** Times of a day, in minutes after midnight in London: around midnight in both zones, and all day. */
const TIMES = [0, 1, 179, 180, 181, 299, 359, 360, 361, 720, 1_079, 1_439];

describe('the days of a voucher at Stripe', () => {
  it.each(ZONED)(
    'the end that is asked for at Stripe is the one that the payment shows: %s',
    (type, method, zone) => {
      const local = METHODS[type];
      if (!local) throw new Error(type);
      for (const minute of TIMES) {
        const createdAtMs = Date.UTC(2026, 10, 28) + minute * MINUTE_MS;
        const wanted = Array.from({ length: 62 * 4 }, (_, i) => createdAtMs + (i + 1) * (DAY_MS / 4));
        for (const wantedMs of [undefined, ...wanted]) {
          const expiresAtMs = expiryOf(local, wantedMs, createdAtMs);
          if (expiresAtMs === undefined) continue;
          const days = expiryDays(method, { createdAtMs, expiresAtMs });
          // Stripe counts from the day of the request in the method's zone, and ends a voucher with its last day.
          const today = Temporal.Instant.fromEpochMilliseconds(createdAtMs)
            .toZonedDateTimeISO(zone)
            .startOfDay();
          expect(days).toBeDefined();
          expect(today.add({ days: (days ?? 0) + 1 }).epochMilliseconds - 1_000).toBe(expiresAtMs);
        }
      }
    },
  );

  it.each([
    ['BOLETO', 'boleto', 3],
    ['OXXO', 'oxxo', 5],
  ] as const)("by default, the voucher has Stripe's own term: %s", (type, method, days) => {
    const local = METHODS[type];
    const createdAtMs = Date.UTC(2026, 10, 28, 2, 59);
    const expiresAtMs = local && expiryOf(local, undefined, createdAtMs);
    expect(expiresAtMs && expiryDays(method, { createdAtMs, expiresAtMs })).toBe(days);
  });

  it.each([
    ['boleto', 0, 0],
    ['boleto', 60, 60],
    ['boleto', 61, undefined],
    ['boleto', -1, undefined],
    ['oxxo', 0, undefined],
    ['oxxo', 1, 1],
    ['oxxo', 7, 7],
    ['oxxo', 8, undefined],
  ] as const)(
    'a number of days that Stripe does not accept is never sent: %s after %i',
    (method, after, days) => {
      const createdAtMs = Date.UTC(2026, 10, 28, 18);
      expect(expiryDays(method, { createdAtMs, expiresAtMs: createdAtMs + after * DAY_MS })).toBe(days);
    },
  );
});

describe('the local methods of a connection', () => {
  it('the setting gives a well-known name another meaning', () => {
    const methods = methodsOf({ SPEI: 'oxxo', TRANSFERENCIA: 'customer_balance' });
    expect([...methods]).toEqual([
      ['PIX', 'pix'],
      ['BOLETO', 'boleto'],
      ['OXXO', 'oxxo'],
      ['SPEI', 'oxxo'],
      ['TRANSFERENCIA', 'customer_balance'],
    ]);
  });

  it('the limits are those that Stripe documents', () => {
    expect(METHODS).toMatchObject({
      PIX: { currencies: ['BRL'], expiry: { least: 1, greatest: 20_160 }, refunds: 'several', close: true },
      BOLETO: { least: 500n, greatest: 4_999_999n, refunds: 'none', documents: ['CPF', 'CNPJ'] },
      OXXO: { least: 1_000n, greatest: 1_000_000n, refunds: 'none', close: false },
      SPEI: { currencies: ['MXN'], refunds: 'none', close: true },
    });
  });
});
