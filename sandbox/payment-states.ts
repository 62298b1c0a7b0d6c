import { randomUUID } from 'node:crypto';
import { AUTHORIZATION_VALID_MS, issuerFields } from './charges.ts';
import { type CodeAction, codeAfterPayer, codeMovedTo, isClosable } from './code-states.ts';
import { changedEntry } from './entries.ts';
import type { CodeEvent, LedgerEntry } from './ledger-entry.ts';
import { ORDER_VALID_MS } from './wallets.ts';

/** The payer's actions on the provider's pages. */
export type PayerAction = CodeAction;

const WAITING_FOR_PAYER: ReadonlySet<string> = new Set(['created', 'challenge_required', 'payer_approved']);

/** Returns the payment after the payer's action; unchanged if the action no longer has an effect. */
export function afterPayerAction(payment: LedgerEntry, action: PayerAction): LedgerEntry {
  const { status, details } = payment;
  if (payment.kind === 'code') return codeAfterPayer(payment, action);
  if (action !== 'pay' && action !== 'decline' && action !== 'leave') return payment;
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

/**
 * Returns the payment after it is closed: expired (a code: canceled) if it was waiting for its payer, otherwise unchanged.
 */
export function afterClosing(payment: LedgerEntry): LedgerEntry {
  if (payment.kind === 'code') return isClosable(payment) ? movedTo(payment, 'canceled') : payment;
  const isClosed = WAITING_FOR_PAYER.has(payment.status) && !payment.details.staysOpen;
  return isClosed ? movedTo(payment, 'expired') : payment;
}

/** Returns the payment in another status, with its sums adjusted. */
export function movedTo(payment: LedgerEntry, status: string): LedgerEntry {
  const { amount, sums, details } = payment;
  if (payment.kind === 'code') return codeMovedTo(payment, status as CodeEvent | 'canceled');
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
        // A partly captured charge stays approved; only the rest is released.
        ...(sums.captured === 0 && { status }),
        sums: { canceled: amount - sums.captured },
        due: null,
      });
    default:
      throw new Error(`a payment cannot become ${status}`);
  }
}

/** Adds the issuer's decision, which only charges have. */
function decided(payment: LedgerEntry, status: string, responseCode: string) {
  if (payment.kind !== 'charge') return { status };
  return { status, responseCode, fields: issuerFields({ status, responseCode }) };
}
