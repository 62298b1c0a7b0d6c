import type { Catalogue } from '#gen/payments/config/catalogue_pb.js';
import { parseDay } from '#src/simulation/read-day.ts';
import { runDay } from '#src/simulation/run-day.ts';
import { strategiesOf } from '#src/simulation/strategies.ts';
import { type Summary, summaryOf } from '#src/simulation/summary.ts';
import { syntheticPayments } from '#src/simulation/synthetic-payments.ts';

/** A small scenario around some connections, each a line of YAML: `{ id: a, rates: { approval_percent: 90 } }`. */
export function scenario(connections: readonly string[], extra = ''): string {
  return `
payments: 4000
currency: USD
amount_from: 10
amount_to: 20
${extra}
cards:
  - { brand: VISA, issuer_country: US, share: 3, hard_decline_percent: 20 }
  - { brand: MASTERCARD, issuer_country: BR, share: 1 }
connections:
${connections.map((connection) => `  - ${connection}`).join('\n')}
`;
}

/** Plays a scenario through every strategy. @returns the summary of a strategy by its name. */
export async function simulate(
  text: string,
  { seed = 1, catalogue }: { seed?: number; catalogue?: Catalogue } = {},
): Promise<(choice: string, failover?: boolean) => Summary> {
  const day = parseDay(text, 'test.yaml');
  const payments = syntheticPayments(day, seed);
  const summaries = new Map<string, Summary>();
  for (const { choice, failover = false, catalogue: routes } of strategiesOf(day, catalogue)) {
    summaries.set(`${choice} ${failover}`, summaryOf(await runDay(day, seed, payments, routes)));
  }
  return (choice, failover = false) => {
    const summary = summaries.get(`${choice} ${failover}`);
    if (!summary) throw new Error(`there is no strategy ${choice}`);
    return summary;
  };
}
