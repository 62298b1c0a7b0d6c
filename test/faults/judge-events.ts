import { type Payment, Transaction_Status } from '#gen/payments/v1/payment_pb.js';
import { decodeRecord } from '#src/payments/stored-record.ts';
import type { World } from './world.ts';

// A release without webhooks finishes payments without events and leaves their sequence at 0. An operation has an event
// once it has ended (see judge-books for the exception).
const COUNTS = `SELECT coalesce(p.id, e.payment_id) AS id, p.event_sequence AS changes, e.events, e.last_sequence,
    p.status <> 'PENDING' AND p.event_sequence > 0 AND p.open_operation IS NULL AND p.record <> e.last_record AS is_untold
  FROM payment p FULL JOIN (
    SELECT account_id, payment_id, count(*)::integer AS events, max(sequence) AS last_sequence,
      (array_agg(record ORDER BY sequence DESC))[1] AS last_record
    FROM event WHERE type LIKE 'payment.%' GROUP BY account_id, payment_id
  ) e ON e.payment_id = p.id AND e.account_id = p.account_id`;

const EVENTS = `SELECT e.payment_id, e.sequence, e.record FROM event e WHERE e.type LIKE 'payment.%'`;

const FINAL_TRANSACTIONS = `SELECT t.id, t.payment_id, t.status
  FROM transaction t JOIN payment p ON p.id = t.payment_id
  WHERE p.event_sequence > 0 AND t.status IN ('SUCCEEDED', 'DECLINED', 'ERROR', 'EXPIRED')`;

/** Statuses that another event may still replace: money that arrives late, and an authorization that expires. */
const MAY_MOVE_ON: ReadonlySet<string> = new Set(['EXPIRED SUCCEEDED', 'SUCCEEDED EXPIRED']);

/**
 * Compares the outbox with the payments: every change has an event, every event has a change, and every final status of
 * a transaction was sent.
 *
 * @returns the findings.
 */
export async function judgeEvents(world: World): Promise<string[]> {
  const found: string[] = [];
  for (const { id, changes, events, last_sequence, is_untold } of await world.query(COUNTS)) {
    if (changes === null) found.push(`${id} has events and is no payment`);
    else if ((events ?? 0) !== changes || (last_sequence ?? 0) !== changes) {
      found.push(`${id} changed ${changes} times and has ${events ?? 0} events`);
    } else if (is_untold) found.push(`the last change of ${id} has no event`);
  }
  const final = new Map(
    (await world.query(FINAL_TRANSACTIONS)).map((row) => [String(row.id), String(row.status)]),
  );
  const told = new Map<string, Set<string>>();
  for (const { payment_id, sequence, record } of await world.query(EVENTS)) {
    for (const [id, status] of statusesOf(decodeRecord(record as Uint8Array))) {
      told.set(id, (told.get(id) ?? new Set()).add(status));
      const stands = final.get(id);
      if (!IS_FINAL.has(status) || status === stands || MAY_MOVE_ON.has(`${status} ${stands}`)) continue;
      found.push(
        `event ${sequence} of ${payment_id} tells that ${id} is ${status}; it is ${stands ?? 'open'}`,
      );
    }
  }
  for (const [id, status] of final) {
    if (!told.get(id)?.has(status)) found.push(`no event tells that ${id} is ${status}`);
  }
  return found;
}

const IS_FINAL: ReadonlySet<string> = new Set(['SUCCEEDED', 'DECLINED', 'ERROR', 'EXPIRED']);

function statusesOf({ transactionsHistory }: Payment): [id: string, status: string][] {
  return transactionsHistory.map(({ id, status }) => [id, Transaction_Status[status] ?? '']);
}
