import { expect } from 'vitest';
import type { PaymentAttempt } from '#src/connectors/port/attempt.ts';
import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import type { Judge, LedgerLine } from './provider.ts';

/** Creates a code at a double. `line` reads its only line in the double's ledger. */
export async function codeAtDouble(judge: Judge, connection: ProviderConnection, attempt: PaymentAttempt) {
  const outcome = await connection.pay(attempt);
  if (outcome.kind !== 'awaits_payer') throw new Error(outcome.kind);
  const line = async (): Promise<LedgerLine> => {
    const lines = (await judge.ledger()).filter((one) => one.idempotency_key === attempt.transactionId);
    expect(lines).toHaveLength(1);
    return lines[0] as LedgerLine;
  };
  return { attempt, outcome, line };
}
