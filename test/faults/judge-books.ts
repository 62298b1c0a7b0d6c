import type { LedgerLine } from './providers/provider.ts';
import type { World } from './world.ts';

const BOOKS = `SELECT p.id, base.id AS base, base.amount_minor_units AS amount, base.capture,
    p.captured_minor_units AS captured, p.refunded_minor_units AS refunded, p.released,
    p.open_operation
  FROM payment p
  JOIN transaction base ON base.payment_id = p.id AND base.parent_id IS NULL
  WHERE base.status = 'SUCCEEDED'`;

const NAMES = `SELECT id, payment_id, provider_payment_id FROM transaction WHERE status = 'SUCCEEDED'`;

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
    const isReleased = !capture && line && isReleasedIn(line);
    if (isReleased !== undefined && isReleased !== row.released) {
      found.push(`${id}: the rest is released here ${row.released}, in the ledger ${isReleased}`);
    }
    if (row.open_operation !== null && world.judge.hasHeardOf(String(row.open_operation), false)) {
      found.push(`${id} has an operation that stays open`);
    }
  }
  const names = Map.groupBy(
    ledger.filter(({ isNamedById }) => isNamedById),
    ({ idempotency_key }) => idempotency_key,
  );
  for (const { id, payment_id, provider_payment_id } of await world.query(NAMES)) {
    const lines = names.get(String(id)) ?? [];
    if (lines.length > 0 && !lines.some((line) => line.id === provider_payment_id)) {
      found.push(`${payment_id}: ${id} is named ${provider_payment_id}, and ${lines[0]?.id} in the ledger`);
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

/**
 * Returns true if nothing is left to capture; undefined for a verification, and at a provider whose ledger does not show
 * what it released.
 */
function isReleasedIn({ amount, amount_captured, amount_canceled }: LedgerLine): boolean | undefined {
  if (amount === 0 || amount_canceled === undefined) return undefined;
  return amount_captured + amount_canceled >= amount;
}
