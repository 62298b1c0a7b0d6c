import { create } from '@bufbuild/protobuf';
import { type Payment, type Transaction, TransactionSettlementSchema } from '#gen/payments/v1/payment_pb.js';
import { toDecimal } from '#src/money.ts';
import { unknownId } from '#src/service-error.ts';
import type { Database } from '#src/store/engine/database.ts';
import { getSettledRecord, type SettledSum } from '#src/store/tables/payment-record.ts';
import { isUuid } from '#src/store/tables/stored-objects.ts';
import { accountOf, type Caller } from '../caller.ts';
import { decodeRecord } from '../stored-record.ts';

/**
 * Returns the current payment, which may have changed since the response to its creation, with what settlement reports say
 * about its transactions.
 *
 * @throws ServiceError PAYMENT_NOT_FOUND, also for another account's payment; INVALID_CREDENTIALS with only the public
 * key.
 */
export async function getPayment(
  deps: { readonly database: Database },
  paymentId: string,
  caller: Pick<Caller, 'accountId' | 'secretPresented'>,
): Promise<Payment> {
  const accountId = accountOf(caller);
  const found = isUuid(paymentId) ? await getSettledRecord(deps.database, accountId, paymentId) : undefined;
  if (found) return withSettlement(decodeRecord(found.record), found.settled);
  throw unknownId('PAYMENT_NOT_FOUND', 'id');
}

function withSettlement(payment: Payment, settled: readonly SettledSum[]): Payment {
  if (settled.length === 0) return payment;
  const sums = Map.groupBy(settled, ({ transactionId }) => transactionId);
  const { transactions: shown, transactionsHistory: all } = payment;
  for (const transaction of shown ? [...all, shown] : all)
    addSettlement(transaction, sums.get(transaction.id));
  return payment;
}

/** Two reports may show the same money, so one is taken. Sums in several currencies cannot be shown as one. */
function addSettlement(transaction: Transaction, sums: readonly SettledSum[] = []): void {
  const [report] = sums.map((sum) => sum.report).sort();
  const [sum, ...others] = sums.filter((one) => one.report === report);
  if (!sum || others.length > 0) return;
  const { currency, payout } = sum;
  const decimal = (minorUnits: string) => toDecimal({ minorUnits: BigInt(minorUnits), currency });
  transaction.settlement = create(TransactionSettlementSchema, {
    ...{ fee: decimal(sum.fee), net: decimal(sum.net), currency },
    ...(payout !== null && { payoutReference: payout }),
  });
}
