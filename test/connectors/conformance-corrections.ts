import { describe, expect, it } from 'vitest';
import type { Capabilities } from '#src/connectors/port/capabilities.ts';
import type { Connector, Corrections } from '#src/connectors/port/connector.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';

/** A connector, with the reports of its provider that correct earlier ones. */
export type ConformingCorrections = {
  readonly connector: Connector;
  /** The outcome of each later report in the connector's table of corrections, by what it is about. */
  readonly corrections: { readonly [of in keyof Corrections]?: (later: string) => Promise<Outcome> };
};

/** Asks a connector for each row of its table of corrections. */
export function describeCorrections(subject: ConformingCorrections, capabilities: () => Capabilities): void {
  describe('corrections', () => {
    const { corrections } = subject.connector;
    for (const of of ['payment', 'capture', 'refund'] as const) {
      for (const [later, earlier] of Object.entries(corrections[of])) {
        it(`the report ${later} about a ${of} corrects ${earlier.join(', ')}`, async () => {
          const outcome = await subject.corrections[of]?.(later);
          expect(outcome).toMatchObject({ corrects: earlier, providerData: { status: later } });
          expect(['approved', 'declined']).toContain(outcome?.kind);
        });
      }
    }
    it('a refund that failed after its success is corrected, and may be corrected again', () => {
      const laters = Object.keys(corrections.refund);
      if (capabilities().refunds !== 'none') expect(laters.length).toBeGreaterThan(1);
      expect(laters.filter((later) => !Object.values(corrections.refund).flat().includes(later))).toEqual([]);
    });
  });
}
