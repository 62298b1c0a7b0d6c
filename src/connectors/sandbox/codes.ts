import type { HttpResult } from '../kit/http-client.ts';
import { knownFields } from '../kit/known-fields.ts';
import { bodyOf, probeProblem, readMoney } from '../kit/provider-answer.ts';
import { declineByScheme } from '../kit/refusal.ts';
import type { Bank } from '../port/connector.ts';
import type { Instructions, Outcome } from '../port/outcome.ts';
import { type Answer, readBanks } from './answers.ts';
import { RESPONSE_CODE, type Reported } from './read-answer.ts';

/** Reads the outcome of a code; undefined if the answer contradicts itself. */
export function readCode(answer: Answer, reported: Reported, isDecline: boolean): Outcome | undefined {
  const { status, response_code: code } = answer;
  if (status === 'declined')
    return RESPONSE_CODE.test(code) && code !== APPROVED
      ? { kind: 'declined', ...reported, ...declineByScheme(code) }
      : undefined;
  if (isDecline) return undefined;
  const money = readMoney(answer.amount_received, answer.currency, 'minor_units');
  if (!money) return undefined;
  const missing = BigInt(Number(answer.amount)) - money.minorUnits;
  const received = money.minorUnits > 0n && missing !== 0n ? { received: money } : {};
  switch (status) {
    case 'created':
      return missing > 0n ? awaitingPayer(answer, { ...reported, ...received }) : undefined;
    case 'confirming':
      return { kind: 'pending', ...reported };
    case 'paid':
      if (missing > 0n) return undefined;
      return { kind: 'approved', ...reported, ...received, ...NO_CARD };
    case 'expired':
    case 'canceled':
      return missing > 0n ? { kind: 'expired', ...reported, ...received } : undefined;
    default:
      return undefined;
  }
}

/** ISO 8583 response code. */
const APPROVED = '00';
const NO_CARD = { authorizationCode: '', retrievalReferenceNumber: '' } as const;

/** Shows the payer the bank's page, or the instructions with the provider's own page as their document. */
function awaitingPayer(
  { bank_url: page, page_url: document, instructions: shown, expires_at: end }: Answer,
  reported: Reported & Pick<Extract<Outcome, { kind: 'awaits_payer' }>, 'received'>,
): Outcome | undefined {
  const until = end === undefined ? {} : { until: new Date(end) };
  if (page !== undefined) return { kind: 'awaits_payer', ...reported, show: { page }, ...until };
  if (!shown) return undefined;
  const { text, number, barcode, account, bank_name: bankName, beneficiary, reference } = shown;
  const fields = { text, number, barcode, account, bankName, beneficiary, reference, document };
  const instructions = knownFields<Instructions>(fields);
  const isPayable = [text, number, account].some((value) => value !== undefined);
  return isPayable ? { kind: 'awaits_payer', ...reported, show: { instructions }, ...until } : undefined;
}

/** Reads the banks of a method. @throws Error if the provider is away. */
export function banksOf(result: HttpResult): readonly Bank[] {
  const body = bodyOf(result);
  if (!body) throw new Error(`the banks cannot be listed: ${probeProblem(result)}`);
  return readBanks(body).banks.flatMap(({ id, name }) =>
    id === undefined || name === undefined ? [] : [{ id, name }],
  );
}
