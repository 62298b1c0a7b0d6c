import type { SettlementKind, SettlementLine } from '#src/connectors/port/settlement-line.ts';
import type { SettledTransaction } from '#src/store/tables/settlement-matches.ts';

/** The part of a line by which its transaction is found. */
export type MatchedLine = Pick<
  SettlementLine,
  'kind' | 'ourId' | 'providerReference' | 'parentReference' | 'disputeReference' | 'amount'
>;

/** A transaction of the payment that a line is about, at the account whose report it is. */
export type Candidate = Omit<SettledTransaction, 'accountId' | 'paymentId' | 'connectionIdentity'>;

const OPERATION: Readonly<Partial<Record<SettlementKind, 'payment' | 'REFUND' | 'CHARGEBACK'>>> = {
  payment: 'payment',
  partial_capture_reversal: 'payment',
  refund: 'REFUND',
  refund_reversal: 'REFUND',
  dispute: 'CHARGEBACK',
  dispute_reversal: 'CHARGEBACK',
};

/** Returns true if a line of a kind moves the money of a transaction. Other kinds have none, and none is searched. */
export function movesTransaction(kind: SettlementKind): boolean {
  return OPERATION[kind] !== undefined;
}

/**
 * Chooses the transaction that a line settles: by our id, else by the provider's id of the movement, else the payment's
 * only transaction of that kind, and of several the only one with the line's amount. Never by the amount alone, since all
 * candidates belong to the payment that an id names.
 *
 * @param candidates the transactions of one payment.
 */
export function chooseTransaction<Of extends Candidate>(
  line: MatchedLine,
  candidates: readonly Of[],
): Of | 'ambiguous' | undefined {
  const suiting = suitingOf(line.kind, candidates);
  const byOurs = suiting.find(({ id }) => id === line.ourId);
  if (byOurs) return byOurs;
  const names = [line.providerReference, line.disputeReference].filter((name) => name !== undefined);
  const named = suiting.filter(({ providerPaymentId: own }) => own !== undefined && names.includes(own));
  const few = named.length > 0 ? named : suiting;
  if (few.length < 2) return few[0];
  const { amount } = line;
  if (!amount) return 'ambiguous';
  const size = amount.minorUnits < 0n ? -amount.minorUnits : amount.minorUnits;
  const alike = few.filter(({ minorUnits, currency }) => minorUnits === size && currency === amount.currency);
  return alike.length === 1 ? alike[0] : 'ambiguous';
}

function suitingOf<Of extends Candidate>(kind: SettlementKind, candidates: readonly Of[]): readonly Of[] {
  const operation = OPERATION[kind];
  if (operation !== 'payment') return candidates.filter(({ type }) => type === operation);
  const moves = candidates.filter(
    ({ type, capture }) => type === 'CAPTURE' || (type === 'PURCHASE' && capture),
  );
  if (moves.length > 0) return moves;
  // Money that was taken although we know only an authorization.
  return candidates.filter(({ type }) => type === 'PURCHASE' || type === 'AUTHORIZE');
}
