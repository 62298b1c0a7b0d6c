import type { Outcome, ReportedCard } from '../port/outcome.ts';
import type { Answer } from './answers.ts';

/** Brands by the beginning of Adyen's names for them: "visa", "visacredit" and "visa_applepay" are all Visa. */
const BRANDS: readonly (readonly [adyen: string, brand: string])[] = [
  ['visa', 'VISA'],
  ['electron', 'VISA'],
  ['mc', 'MASTERCARD'],
  ['amex', 'AMERICAN_EXPRESS'],
  ['diners', 'DINERS_CLUB'],
  ['discover', 'DISCOVER'],
  ['jcb', 'JCB'],
  ['cup', 'UNIONPAY'],
  ['maestro', 'MAESTRO'],
  ['elo', 'ELO'],
  ['hipercard', 'HIPERCARD'],
];

const TYPES = /^(CREDIT|DEBIT|PREPAID)/;

/**
 * Adds the charged card to an approval, as far as the account is configured to receive its data. For a wallet's token, it is
 * the card behind the wallet.
 */
export function withCard(approved: Outcome, reported: Pick<Answer, 'additionalData'>): Outcome {
  const card = reportedCard(reported);
  return approved.kind === 'approved' && card ? { ...approved, card } : approved;
}

function reportedCard({ additionalData }: Pick<Answer, 'additionalData'>): ReportedCard | undefined {
  const { cardPaymentMethod, paymentMethod, paymentMethodVariant, cardSummary, expiryDate, fundingSource } =
    additionalData;
  const name = [cardPaymentMethod, paymentMethod, paymentMethodVariant].find(Boolean) ?? '';
  const [, month, year] = /^(\d{1,2})\/\d{2}(\d{2})$/.exec(expiryDate) ?? [];
  const card = {
    brand: BRANDS.find(([adyen]) => name.startsWith(adyen))?.[1],
    lastFour: cardSummary,
    expirationMonth: month === undefined ? undefined : Number(month),
    expirationYear: year === undefined ? undefined : Number(year),
    type: TYPES.exec(fundingSource)?.[0],
  };
  return Object.values(card).some((value) => value !== undefined) ? card : undefined;
}
