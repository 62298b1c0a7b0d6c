import type { Database } from '#src/store/engine/database.ts';
import { linesOfPayment, MAX_LINES_SHOWN, type SettledLine } from '#src/store/tables/payment-settlement.ts';
import { findPaidPayouts, type PaidPayout, type Payout } from '#src/store/tables/settlement-payouts.ts';
import { type Html, html, NOTHING } from '#src/web/html.ts';
import { payoutAddress } from './payout-page.ts';
import { moneyText, numberCell, shortened, time } from './show.ts';

/** A payment's lines in providers' reports, and the payouts that they name, by `payoutKey`. */
export type PaymentSettlement = {
  readonly lines: readonly SettledLine[];
  readonly paid: ReadonlyMap<string, PaidPayout>;
};

/** Reads what providers' reports say about a payment. */
export async function readPaymentSettlement(
  database: Database,
  accountId: string,
  paymentId: string,
): Promise<PaymentSettlement> {
  const lines = await linesOfPayment(database, accountId, paymentId);
  const paid = new Map<string, PaidPayout>();
  for (const [identity, own] of Map.groupBy(lines, ({ connectionIdentity }) => connectionIdentity)) {
    const references = [...new Set(own.flatMap(({ payoutReference }) => payoutReference ?? []))];
    if (references.length === 0) continue;
    for (const one of await findPaidPayouts(database, identity, references)) {
      paid.set(payoutKey({ identity, reference: one.reference }), one);
    }
  }
  return { lines, paid };
}

function payoutKey({ identity, reference }: Payout): string {
  return JSON.stringify([identity, reference]);
}

/**
 * Renders gross, fee and net of each transaction that a report settles, and when they were paid out. Reports of one
 * provider that show the same money twice have rows of their own.
 *
 * @param transactions the payment's transactions, in their order.
 */
export function settledPayment(
  { lines, paid }: PaymentSettlement,
  transactions: readonly { readonly id: string; readonly type: string }[],
): Html {
  if (lines.length === 0) return NOTHING;
  const rows = transactions.flatMap(({ id, type }) => {
    const own = lines.filter(({ transactionId }) => transactionId === id);
    const alike = Map.groupBy(own, (one) => JSON.stringify([one.report, one.settlementCurrency]));
    return [...alike.values()].map((some) => row(type, some, paid));
  });
  const isMore = lines.length === MAX_LINES_SHOWN;
  return html`<section class="card scroll" tabindex="0"><h2>Settlement</h2><table class="lines"><thead><tr><th scope="col">Transaction</th><th scope="col" class="number">Gross</th><th scope="col" class="number">Fee</th><th scope="col" class="number">Net</th><th scope="col">Paid out (UTC)</th></tr></thead><tbody>${rows}</tbody></table>${isMore ? html`<p class="quiet">Only the first ${MAX_LINES_SHOWN} lines count here.</p>` : NOTHING}</section>`;
}

function row(type: string, lines: readonly SettledLine[], paid: PaymentSettlement['paid']): Html {
  const [{ settlementCurrency: currency, report }] = lines as readonly [SettledLine];
  const sum = (part: 'gross' | 'fee' | 'tax' | 'net') => lines.reduce((all, one) => all + one[part], 0n);
  const shown = (minorUnits: bigint) => moneyText({ minorUnits, currency });
  const tax = sum('tax');
  const payouts = new Map(
    lines.flatMap(({ connectionIdentity: identity, payoutReference: reference }) =>
      reference === undefined ? [] : [[payoutKey({ identity, reference }), { identity, reference }] as const],
    ),
  );
  const paidOut = [...payouts].map(([key, payout]) => html`<div>${payoutLink(payout, paid.get(key))}</div>`);
  const name = html`${type}${report ? html` <span class="quiet">${report} report</span>` : NOTHING}`;
  const fee = html`${shown(sum('fee'))}${tax === 0n ? NOTHING : html`<br><span class="quiet">tax ${shown(tax)}</span>`}`;
  return html`<tr><th scope="row">${name}</th>${numberCell('Gross', shown(sum('gross')))}${numberCell('Fee', fee)}${numberCell('Net', shown(sum('net')))}<td>${paidOut.length === 0 ? 'The report names no payout' : paidOut}</td></tr>`;
}

function payoutLink(payout: Payout, paid: PaidPayout | undefined): Html {
  const link = html`<a href="${payoutAddress(payout)}">${shortened(payout.reference, 60)}</a>`;
  if (!paid) return html`In ${link}, not reported as paid yet`;
  return html`${time(paid.paidAt)} in ${link}${paid.isReturned ? ', which came back' : ''}`;
}
