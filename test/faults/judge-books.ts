import type { LedgerLine } from './providers/provider.ts';
import type { World } from './world.ts';

const BOOKS = `SELECT p.id, base.id AS base, base.amount_minor_units AS amount, base.capture,
    p.captured_minor_units AS captured, p.refunded_minor_units AS refunded, p.open_operation
  FROM payment p
  JOIN transaction base ON base.payment_id = p.id AND base.parent_id IS NULL
  WHERE base.status = 'SUCCEEDED'`;

/**
 * The ISO 8583 codes for an operation that the payment's state does not permit, or that exceeds the remaining amount.
 */
const BEYOND_THE_BOOKS: ReadonlySet<string | null> = new Set(['57', '61']);

/**
 * Compares the operations' outcomes with the columns that enforce their limits, and with the judge's totals.
 *
 * @returns the findings.
 */
export async function judgeBooks(world: World, ledger: readonly LedgerLine[]): Promise<string[]> {
  const found: string[] = [];
  const byKey = new Map(ledger.map((line) => [line.idempotency_key, line]));
  for (const row of await world.query(BOOKS)) {
    const { id, base, capture } = row;
    const [amount = 0, captured = 0, refunded = 0] = [row.amount, row.captured, row.refunded].map(Number);
    const line = byKey.get(String(base));
    const taken = capture ? amount : captured;
    if (refunded > taken || captured > amount) found.push(`${id} gave back ${refunded} of ${taken}`);
    if (line && (line.amount_refunded !== refunded || line.amount_captured !== taken)) {
      found.push(
        `${id}: ${taken} captured, ${refunded} refunded; the ledger has ${line.amount_captured}, ${line.amount_refunded}`,
      );
    }
    if (row.open_operation !== null && world.judge.hasHeardOf(String(row.open_operation))) {
      found.push(`${id} has an operation that stays open`);
    }
  }
  // We must enforce the limits ourselves, because some providers do not enforce them.
  for (const { id, kind, status, response_code } of ledger) {
    if (status === 'failed' && BEYOND_THE_BOOKS.has(response_code)) {
      found.push(`${id}: a ${kind} was asked for that the payment did not allow (${response_code})`);
    }
  }
  return found;
}
