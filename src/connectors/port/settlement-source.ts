/** A period; `before` is exclusive. */
export type SettlementPeriod = { readonly from: Date; readonly before: Date };

/**
 * Settlement reports that a provider writes on request. A call moves no money, and may be repeated.
 *
 * Every call rejects with a SettlementFetchError if the provider does not do as asked.
 */
export type SettlementSource = {
  /** true: the service fetches the reports daily. */
  readonly isDaily: boolean;
  /** Returns the period of which the provider has complete reports. */
  available(): Promise<SettlementPeriod>;
  /** Requests a report on a period. @returns its id. */
  request(period: SettlementPeriod): Promise<string>;
  /** Reads a report, in the form that `SettlementReports.read` reads. undefined: the provider is still writing it. */
  read(id: string): Promise<Uint8Array | undefined>;
};

/** Error for a report that cannot be fetched. The message says what happened and contains no secret. */
export class SettlementFetchError extends Error {
  override readonly name = 'SettlementFetchError';
}
