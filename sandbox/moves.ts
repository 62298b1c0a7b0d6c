import type { LedgerEntry, Move, MoveType } from './ledger-entry.ts';

/** Adds to an entry the moves of money that its state implies and that it does not have yet. */
export function withMoves(entry: LedgerEntry): LedgerEntry {
  const { moves = [] } = entry.details;
  const more = typesOf(entry).slice(moves.length);
  if (more.length === 0) return entry;
  const atMs = Date.now();
  const added = more.map((type): Move => ({ type, atMs }));
  return { ...entry, details: { ...entry.details, moves: [...moves, ...added] } };
}

/** Returns the types of all moves of an entry's money, in their order. */
function typesOf({ kind, status, details, ...entry }: LedgerEntry): readonly MoveType[] {
  const { settleWrong } = details;
  switch (kind) {
    case 'charge': {
      const isTaken = status === 'approved' && details.captureOnApproval;
      return isTaken || (status === 'declined' && settleWrong === 'declined') ? ['payment'] : [];
    }
    case 'wallet_order':
    case 'wallet_enrollment':
    case 'code':
      return status === 'paid' ? ['payment'] : [];
    case 'capture':
      return status === 'succeeded' ? ['capture'] : [];
    case 'refund':
      if (status === 'succeeded') return settleWrong === 'reversed' ? GIVEN_AND_TAKEN : ['refund'];
      // A refund that fails at once has moved nothing.
      return status === 'failed' && entry.latest !== undefined ? GIVEN_AND_TAKEN : [];
    case 'dispute': {
      const { funds_moved: count = 0 } = JSON.parse(entry.latest ?? entry.answer);
      return Array.from({ length: count }, (_, n) => (n % 2 === 0 ? 'dispute' : 'dispute_reversal'));
    }
    default:
      return [];
  }
}

const GIVEN_AND_TAKEN: readonly MoveType[] = ['refund', 'refund_failure'];
