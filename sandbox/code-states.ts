import { issuerFields } from './charges.ts';
import { CODE_METHODS, type CodeMethod, DECLINING_BANK } from './code-methods.ts';
import { changedEntry, type EntryChange } from './entries.ts';
import type { CodeDetails, CodeEvent, LedgerEntry } from './ledger-entry.ts';

/** The payer's actions on the page of a code. */
export type CodeAction = 'pay' | 'pay-half' | 'pay-more' | 'decline' | 'expire' | 'leave';

/** ISO 8583 response code with which a bank declines: no action taken. */
const DECLINED_BY_BANK = '21';
const DO_NOT_HONOR = '05';

/** Returns the method of a code, and its details. */
export function codeOf({ details }: LedgerEntry): CodeDetails & { readonly rules: CodeMethod } {
  const { code } = details;
  if (!code) throw new Error('the entry is no code');
  return { ...code, rules: CODE_METHODS[code.method] };
}

/** Returns the amount of a transfer of too little, or of too much, in minor units. */
export function otherAmount(amount: number, which: 'underpaid' | 'overpaid'): number {
  return which === 'underpaid' ? Math.floor(amount / 2) : amount + Math.floor(amount / 2);
}

/** Returns the code after the change that was due, or after its cancellation. */
export function codeMovedTo(entry: LedgerEntry, status: CodeEvent | 'canceled'): LedgerEntry {
  const { plan } = codeOf(entry);
  const later = plan.slice(1);
  switch (status) {
    case 'paid':
      return withMoney(entry, Math.max(0, entry.amount - codeOf(entry).received));
    case 'confirming':
      return changed(entry, { status }, { plan: later.filter(({ status }) => status !== 'expired') });
    case 'declined':
      return declined(entry, DO_NOT_HONOR);
    case 'expired':
      return changed(entry, { status }, { plan: later });
    case 'canceled':
      return canceled(entry);
    default:
      return withMoney(entry, otherAmount(entry.amount, status), later);
  }
}

/** Returns true if a code can be canceled: its method allows it, it is open, and no money has arrived. */
export function isClosable(entry: LedgerEntry): boolean {
  const { rules, received } = codeOf(entry);
  return rules.isClosable && entry.status === 'created' && received === 0 && !entry.details.staysOpen;
}

/** Returns the code after the payer's action; unchanged if the action has no effect. */
export function codeAfterPayer(entry: LedgerEntry, action: CodeAction): LedgerEntry {
  const { rules, plan, received, bank } = codeOf(entry);
  if (entry.status !== 'created' || action === 'leave') return entry;
  switch (action) {
    case 'pay':
      if (bank === DECLINING_BANK) return declined(entry, DECLINED_BY_BANK);
      return withMoney(entry, entry.amount - received);
    case 'pay-half':
    case 'pay-more': {
      if (!rules.takesAnyAmount) return entry;
      return withMoney(
        entry,
        otherAmount(entry.amount, action === 'pay-half' ? 'underpaid' : 'overpaid'),
        plan,
      );
    }
    case 'decline':
      return rules.isAtBank ? declined(entry, DECLINED_BY_BANK) : entry;
    case 'expire':
      // Only money that comes late may still change an expired code.
      return changed(entry, { status: 'expired' }, { plan: plan.filter(({ isLate }) => isLate) });
  }
}

/** Adds money to a code. With enough, it is paid; otherwise, it waits for the rest. */
function withMoney(entry: LedgerEntry, amount: number, plan: CodeDetails['plan'] = []): LedgerEntry {
  const received = codeOf(entry).received + amount;
  const isPaid = received >= entry.amount;
  return changed(
    entry,
    {
      ...(isPaid && { status: 'paid', sums: { captured: entry.amount, captures: 1, canceled: 0 } }),
      fields: { amount_received: received },
    },
    { received, plan: isPaid ? [] : plan },
  );
}

function declined(entry: LedgerEntry, responseCode: string): LedgerEntry {
  const state = { status: 'declined', responseCode };
  const { response_code, response_message } = issuerFields(state);
  return changed(entry, { ...state, fields: { response_code, response_message } }, { plan: [] });
}

function canceled(entry: LedgerEntry): LedgerEntry {
  const { plan } = codeOf(entry);
  const change = { status: 'canceled', sums: { canceled: entry.amount } };
  return changed(entry, change, { plan: plan.filter(({ isLate }) => isLate) });
}

/** Applies a change to a code and its details. The first part of its plan is what is due. */
function changed(entry: LedgerEntry, change: EntryChange, code: Partial<CodeDetails>): LedgerEntry {
  const { rules: _, ...before } = codeOf(entry);
  const details = { ...before, ...code };
  return changedEntry(entry, { ...change, due: details.plan[0] ?? null, details: { code: details } });
}
