import { randomUUID } from 'node:crypto';
import { type EntryDetails, type EntryKind, type LedgerEntry, NO_SUMS, type Sums } from './ledger-entry.ts';
import { withMoves } from './moves.ts';

/** The headers of a call that creates something. */
export type Call = {
  /** The caller's idempotency key. A repeat gets the first response. */
  readonly idempotencyKey: string;
  readonly acquirer: 'ONE' | 'TWO';
  readonly account: string;
};

/** Parts of a new entry. `fields` are specific to its kind, and every response shows them. */
export type NewEntry = {
  readonly kind: EntryKind;
  readonly call: Call;
  readonly status: string;
  readonly amount: number;
  readonly currency: string;
  readonly fields: Readonly<Record<string, unknown>>;
  /** Set if the id must be known in advance, for example for the URL of a page. */
  readonly id?: string;
  readonly parentId?: string;
  readonly responseCode?: string;
  readonly cardIin?: string;
  readonly cardLastFour?: string;
  readonly sums?: Sums;
  readonly due?: LedgerEntry['due'];
  /** When it expires, if something else is due before. */
  readonly expiresAtMs?: number;
  readonly details?: EntryDetails;
};

const PREFIXES: Readonly<Record<EntryKind, string>> = {
  charge: 'ch',
  verification: 'vf',
  wallet_order: 'wo',
  wallet_enrollment: 'we',
  wallet_agreement: 'wa',
  code: 'cd',
  capture: 'cp',
  cancellation: 'cn',
  refund: 'rf',
  completion: 'cm',
  dispute: 'dp',
  closed: 'cl',
};

/** Statuses for which the response is 402. */
const REFUSED: ReadonlySet<string> = new Set(['declined', 'failed']);

/** Generates the id of a new entry. */
export function newId(kind: EntryKind): string {
  return `${PREFIXES[kind]}_${randomUUID()}`;
}

/** Creates an entry with the response to its call. */
export function newEntry(made: NewEntry): LedgerEntry {
  const { kind, call, status, amount, currency, sums = NO_SUMS, due } = made;
  const id = made.id ?? newId(kind);
  const expiresAtMs = made.expiresAtMs ?? (due?.status === 'expired' ? due.atMs : undefined);
  const answer = {
    object: kind,
    id,
    idempotency_key: call.idempotencyKey,
    account: call.account,
    acquirer: call.acquirer,
    status,
    amount,
    currency,
    ...made.fields,
    ...(isPayment(kind) && shownSums(sums)),
    expires_at: expiresAtMs === undefined ? null : new Date(expiresAtMs).toISOString(),
    created_at: new Date().toISOString(),
  };
  return withMoves({
    id,
    idempotencyKey: call.idempotencyKey,
    kind,
    parentId: made.parentId,
    acquirer: call.acquirer,
    status,
    responseCode: made.responseCode,
    amount,
    currency,
    cardIin: made.cardIin,
    cardLastFour: made.cardLastFour,
    answerStatus: REFUSED.has(status) ? 402 : 201,
    answer: JSON.stringify(answer),
    latest: undefined,
    sums,
    due,
    details: made.details ?? {},
  });
}

/** Changes to an entry. `fields` replace those of the first response. */
export type EntryChange = {
  readonly status?: string;
  readonly responseCode?: string;
  readonly sums?: Partial<Sums>;
  /** null cancels the scheduled change. */
  readonly due?: LedgerEntry['due'] | null;
  readonly fields?: Readonly<Record<string, unknown>>;
  readonly details?: EntryDetails;
};

/** Returns the entry after a change; its first response does not change. */
export function changedEntry(entry: LedgerEntry, change: EntryChange): LedgerEntry {
  const status = change.status ?? entry.status;
  const sums = { ...entry.sums, ...change.sums };
  const due = change.due === undefined ? entry.due : (change.due ?? undefined);
  const latest = {
    ...JSON.parse(currentAnswer(entry)),
    status,
    ...(isPayment(entry.kind) && shownSums(sums)),
    ...change.fields,
  };
  return withMoves({
    ...entry,
    status,
    responseCode: change.responseCode ?? entry.responseCode,
    sums,
    due,
    latest: JSON.stringify(latest),
    details: { ...entry.details, ...change.details },
  });
}

/** Returns the JSON of the current object. */
export function currentAnswer(entry: LedgerEntry): string {
  return entry.latest ?? entry.answer;
}

/** Creates the entry that closes an unused idempotency key, so that nothing is ever done with it. */
export function closedEntry(idempotencyKey: string): LedgerEntry {
  const id = newId('closed');
  return {
    ...newEntry({
      kind: 'closed',
      id,
      call: { idempotencyKey, acquirer: 'ONE', account: '' },
      status: 'closed',
      amount: 0,
      currency: '',
      fields: {},
    }),
    acquirer: '',
    answerStatus: 200,
    answer: JSON.stringify({ object: 'closed', id, idempotency_key: idempotencyKey }),
  };
}

/** Reports whether two entries result from the same request. */
export function isSameRequest(first: LedgerEntry, second: LedgerEntry): boolean {
  if (first.kind !== second.kind || first.parentId !== second.parentId) return false;
  // A cancellation or completion is requested without an amount.
  if (first.kind === 'cancellation' || first.kind === 'completion') return true;
  if (first.details.code?.method !== second.details.code?.method) return false;
  return first.amount === second.amount && first.currency === second.currency;
}

/** Reports whether entries of a kind are payments, on which operations can act. */
export function isPayment(kind: EntryKind): boolean {
  return kind === 'charge' || kind === 'wallet_order' || kind === 'wallet_enrollment' || kind === 'code';
}

function shownSums(sums: Sums): object {
  return {
    captured: sums.captured > 0,
    amount_captured: sums.captured,
    amount_canceled: sums.canceled,
    amount_refunded: sums.refunded,
  };
}
