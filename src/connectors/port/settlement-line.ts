import type { Money } from '#src/money.ts';

/** The kinds of lines of a settlement report. */
export const SETTLEMENT_KINDS = [
  ...(['payment', 'partial_capture_reversal', 'refund', 'refund_reversal', 'dispute'] as const),
  ...(['dispute_reversal', 'fee', 'tax', 'payout', 'payout_reversal', 'reserve', 'conversion'] as const),
  ...(['adjustment', 'other'] as const),
];

/** The kind of a line. */
export type SettlementKind = (typeof SETTLEMENT_KINDS)[number];

/** A line of a provider's settlement report: one movement at the provider. It has no personal data. */
export type SettlementLine = {
  /** Line of the file on which it begins, from 1; for a report in JSON, the number of the movement. */
  readonly lineNumber: number;
  /** Identifies the line at its account, in every report that repeats it. */
  readonly key: string;
  /** Distinguishes reports of one provider that show the same money twice; '' if it has one report. */
  readonly report: string;
  readonly kind: SettlementKind;
  /** The provider's word for the kind. */
  readonly rawKind: string;
  /** The UUID that we gave the provider: of the transaction, or of the payment's first transaction. */
  readonly ourId: string | undefined;
  /** The provider's ids of the movement and of its payment. */
  readonly providerReference: string | undefined;
  readonly parentReference: string | undefined;
  readonly disputeReference: string | undefined;
  /** The provider's id of the payout; undefined if the report does not link payouts. */
  readonly payoutReference: string | undefined;
  /** The amount as the payer saw it, positive to the merchant; undefined if the report does not say. */
  readonly amount: Money | undefined;
  /** Minor units of `settlementCurrency`, positive to the merchant: a cost is negative. net = gross + fee + tax. */
  readonly gross: bigint;
  readonly fee: bigint;
  readonly tax: bigint;
  readonly net: bigint;
  /** Number of parts from which the report adds up the fee, each of them rounded; at least 1. */
  readonly feeParts: number;
  readonly settlementCurrency: string;
  /** Decimal text; undefined without a conversion. */
  readonly exchangeRate: string | undefined;
  /** undefined if the report gives no time zone that is known for certain. */
  readonly occurredAt: Date | undefined;
};

/**
 * Reads a provider's report.
 *
 * @param text pieces of the file, of any size.
 * @param options.currency the account's currency, for reports that do not name it.
 * @throws SettlementFileError if it is not the provider's report, or a value cannot be read.
 */
export type ReadSettlement = (
  text: AsyncIterable<string>,
  options: { readonly currency?: string | undefined },
) => AsyncGenerator<SettlementLine, void>;

/** The settlement reports of a provider. */
export type SettlementReports = {
  readonly read: ReadSettlement;
  /** Hours after a success, at the most, until the provider settles it. */
  readonly windowHours: number;
  /** The same for kinds of reports that settle sooner, by their lines' `report`. */
  readonly reportHours?: Readonly<Record<string, number>>;
};

/** Error for a file that cannot be imported. The message names the line and column, and quotes no cell. */
export class SettlementFileError extends Error {
  override readonly name = 'SettlementFileError';
}
