import { randomUUID } from 'node:crypto';
import { AUTHORIZATION_VALID_MS, issuerFields } from './charges.ts';
import { changedEntry } from './entries.ts';
import type { LedgerEntry } from './ledger.ts';
import { ORDER_VALID_MS } from './wallets.ts';

/** Actions of the payer at a page of the provider. */
export type PayerAction = 'pay' | 'decline' | 'leave';

const WAITING_FOR_PAYER: ReadonlySet<string> = new Set(['created', 'challenge_required', 'payer_approved']);

/** A payment after its payer has acted; as it was when the action means nothing any more. */
export function afterPayerAction(payment: LedgerEntry, action: PayerAction): LedgerEntry {
  const { status, details } = payment;
  if (status === 'created') {
    if (action === 'decline') return movedTo(payment, 'declined');
    if (action === 'leave') return movedTo(payment, 'canceled');
    if (payment.kind === 'wallet_agreement') return movedTo(payment, 'agreed');
    return movedTo(payment, details.needsCompletion ? 'payer_approved' : 'paid');
  }
  if (status === 'challenge_required') {
    if (action === 'leave' || details.challenge === 'abandoned') return payment;
    return movedTo(payment, action === 'pay' && details.challenge === 'passed' ? 'approved' : 'declined');
  }
  return payment;
}

/** A payment that is closed while it waits for its payer: it has expired; as it was when it cannot be closed. */
export function afterClosing(payment: LedgerEntry): LedgerEntry {
  const isClosed = WAITING_FOR_PAYER.has(payment.status) && !payment.details.staysOpen;
  return isClosed ? movedTo(payment, 'expired') : payment;
}

/** A payment in another status, with what that does to its money. */
export function movedTo(payment: LedgerEntry, status: string): LedgerEntry {
  const { amount, sums, details } = payment;
  const captured = { captured: amount, captures: 1 };
  switch (status) {
    case 'approved':
      return changedEntry(payment, {
        ...decided(payment, status, '00'),
        ...(details.captureOnApproval
          ? { sums: captured, due: null }
          : { due: { status: 'expired', atMs: Date.now() + AUTHORIZATION_VALID_MS } }),
      });
    case 'declined':
      return changedEntry(payment, { ...decided(payment, status, '05'), due: null });
    case 'payer_approved':
      return changedEntry(payment, { status, due: { status: 'expired', atMs: Date.now() + ORDER_VALID_MS } });
    case 'paid':
      return changedEntry(payment, { status, sums: captured, due: null });
    case 'agreed':
      return changedEntry(payment, { status, due: null, fields: { wallet_token: `wt_${randomUUID()}` } });
    case 'canceled':
    case 'expired':
      return changedEntry(payment, {
        // What was captured in part stays approved; only the rest is given up.
        ...(sums.captured === 0 && { status }),
        sums: { canceled: amount - sums.captured },
        due: null,
      });
    default:
      throw new Error(`a payment cannot become ${status}`);
  }
}

/** Issuers decide charges only. */
function decided(payment: LedgerEntry, status: string, responseCode: string) {
  if (payment.kind !== 'charge') return { status };
  return { status, responseCode, fields: issuerFields({ status, responseCode }) };
}
