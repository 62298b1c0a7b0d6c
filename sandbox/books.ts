import { ApiError } from './api-error.ts';
import { afterStep, disputeOf, SCHEDULED } from './disputes.ts';
import { closedEntry, isPayment, isSameRequest } from './entries.ts';
import type { Ledger } from './ledger.ts';
import type { LedgerEntry } from './ledger-entry.ts';
import type { Notifications } from './notifications.ts';
import { settleOperation } from './operations.ts';
import { afterClosing, afterPayerAction, movedTo, type PayerAction } from './payment-states.ts';
import type { Timers } from './timers.ts';

/** An entry; `isNew` is true if this call wrote it. */
export type Recorded = { readonly entry: LedgerEntry; readonly isNew: boolean };

/**
 * Actions of the provider on its ledger. Every change sends notifications, and a change that is due (for example an
 * expiry) is applied before the entry is read.
 */
export type Books = {
  /** @throws ApiError 409 if the idempotency key was used for another request. */
  record(entry: LedgerEntry): Promise<Recorded>;
  /**
   * Records an operation on a payment, which `decide` derives from the payment's current state.
   *
   * @param name the payment's id or idempotency key.
   * @throws ApiError 404 if there is no such payment, 409 if the idempotency key was used for another request.
   */
  operate(name: string, decide: (payment: LedgerEntry) => Operation): Promise<Recorded>;
  /** Applies the payer's action on a page. @returns undefined if there is no such payment. */
  act(paymentId: string, action: PayerAction): Promise<LedgerEntry | undefined>;
  /**
   * Closes an idempotency key. If nothing was done with it, nothing ever will be; a payment that waits for its payer
   * expires; anything else stays unchanged.
   */
  close(idempotencyKey: string): Promise<LedgerEntry>;
  findByKey(idempotencyKey: string): Promise<LedgerEntry | undefined>;
  findById(id: string): Promise<LedgerEntry | undefined>;
};

/** An operation's entry, and its payment after the operation. */
export type Operation = readonly [operation: LedgerEntry, payment: LedgerEntry];

/** Creates the provider's books. */
export function keepBooks(
  ledger: Ledger,
  notifications: Notifications,
  timers: Timers,
  publicUrl: () => string,
): Books {
  const { follow, dispute, change, settle } = settleEntries(ledger, notifications, timers, publicUrl);

  async function settled(found: Promise<LedgerEntry | undefined>): Promise<LedgerEntry | undefined> {
    const entry = await found;
    return entry && settle(entry);
  }

  async function findByName(name: string): Promise<LedgerEntry | undefined> {
    return (await ledger.findById(name)) ?? ledger.findByKey(name);
  }

  async function record(entry: LedgerEntry): Promise<Recorded> {
    const recorded = await ledger.record(entry);
    if (!isSameRequest(recorded.entry, entry)) throw keyInUse();
    if (recorded.isNew) await follow([entry]);
    return recorded;
  }

  async function operate(name: string, decide: (payment: LedgerEntry) => Operation): Promise<Recorded> {
    const payment = await settled(findByName(name));
    if (!payment || !isPayment(payment.kind))
      throw new ApiError(404, 'not_found', 'there is no such payment');
    let decided: Operation | undefined;
    const written = await ledger.change([payment.id], ([current]) => {
      if (!current) return [];
      decided = decide(current);
      const [operation, changed] = decided;
      return changed === current ? [operation] : [operation, changed];
    });
    const operation = decided?.[0];
    if (!operation) throw new Error('the ledger lost a payment');
    if (written) {
      await follow([operation]);
      for (const changed of written) await dispute(changed);
      return { entry: operation, isNew: true };
    }
    const first = await ledger.findByKey(operation.idempotencyKey);
    if (!first || !isSameRequest(first, operation)) throw keyInUse();
    return { entry: first, isNew: false };
  }

  async function close(idempotencyKey: string): Promise<LedgerEntry> {
    const { entry } = await ledger.record(closedEntry(idempotencyKey));
    const now = await settle(entry);
    return isPayment(now.kind) ? ((await change(now.id, afterClosing)) ?? now) : now;
  }

  return {
    record,
    operate,
    act: async (paymentId, action) => {
      const payment = await settled(ledger.findById(paymentId));
      return payment && change(payment.id, (current) => afterPayerAction(current, action));
    },
    close,
    findByKey: (idempotencyKey) => settled(ledger.findByKey(idempotencyKey)),
    findById: (id) => settled(ledger.findById(id)),
  };
}

const EARLY_MS = 5;

/** Follows up on ledger changes: sends notifications, and applies scheduled changes. */
function settleEntries(
  ledger: Ledger,
  notifications: Notifications,
  timers: Timers,
  publicUrl: () => string,
) {
  /** Sends the notifications of written entries, and sets timers for scheduled changes. */
  async function follow(written: readonly LedgerEntry[]): Promise<void> {
    for (const entry of written) {
      // A timer may fire slightly early.
      if (entry.due) timers.after(Math.max(0, entry.due.atMs - Date.now()) + EARLY_MS, () => settle(entry));
      if (entry.status !== SCHEDULED) await notifications.announce(entry);
      await dispute(entry);
    }
  }

  /** Schedules the dispute that a payment's call has requested, once money is taken. */
  async function dispute(payment: LedgerEntry): Promise<void> {
    const requested = isPayment(payment.kind) ? disputeOf(payment, publicUrl()) : undefined;
    const recorded = requested && (await ledger.record(requested));
    if (recorded?.isNew) await follow([recorded.entry]);
  }

  async function change(
    id: string,
    decide: (payment: LedgerEntry) => LedgerEntry,
  ): Promise<LedgerEntry | undefined> {
    let found: LedgerEntry | undefined;
    const written = await ledger.change([id], ([payment]) => {
      found = payment;
      const changed = payment && decide(payment);
      return changed && changed !== payment ? [changed] : [];
    });
    await follow(written ?? []);
    return written?.[0] ?? found;
  }

  /** Applies an entry's scheduled change, if it is due. */
  async function settle(entry: LedgerEntry): Promise<LedgerEntry> {
    if (dueStatusOf(entry) === undefined) return entry;
    if (entry.parentId === undefined || entry.kind === 'dispute') {
      const moved = change(entry.id, (current) => {
        const status = dueStatusOf(current);
        if (status === undefined) return current;
        return current.kind === 'dispute' ? afterStep(current) : movedTo(current, status);
      });
      return (await moved) ?? entry;
    }
    let settled = entry;
    const written = await ledger.change([entry.id, entry.parentId], (entries) => {
      const operation = entries.find(({ id }) => id === entry.id);
      const payment = entries.find(({ id }) => id === entry.parentId);
      settled = operation ?? entry;
      const isDue = operation && dueStatusOf(operation) !== undefined;
      return isDue && payment ? settleOperation(operation, payment) : [];
    });
    const operation = written?.find(({ id }) => id === entry.id);
    if (operation) await follow([operation]);
    return operation ?? settled;
  }

  return { follow, dispute, change, settle };
}

/** Returns the status to which an entry should have changed by now; undefined if no change is due. */
function dueStatusOf({ due }: LedgerEntry): string | undefined {
  return due && due.atMs <= Date.now() ? due.status : undefined;
}

function keyInUse(): ApiError {
  return new ApiError(409, 'idempotency_conflict', 'the idempotency key was used for another request');
}
