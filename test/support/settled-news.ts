import { expect } from 'vitest';
import { NIL_UUID } from '#src/store/engine/rows.ts';
import { earlier, type Tables } from './tables.ts';

/**
 * Waits until all notifications are settled, except those without a matching transaction, whose search continues for
 * days. Then lets enough time pass that the next one is processed at once.
 */
export async function untilNewsIsSettled(tables: Tables): Promise<void> {
  const open =
    'SELECT 1 FROM notification WHERE settled_at IS NULL AND (account_id <> $1 OR check_at <= now())';
  await expect.poll(() => tables.query(open, [NIL_UUID])).toEqual([]);
  await tables.query(`UPDATE notification SET settled_at = ${earlier('settled_at', '2 seconds')}`);
}
