import { BY_STATUS, declineBy, refusalTable, refusedOutcome } from '../kit/refusal.ts';
import type { DeclineReason } from '../port/decline.ts';
import type { Outcome } from '../port/outcome.ts';
import { type Answer, isError } from './answers.ts';

/** Columns: an error's HTTP status; or the state of a payer's page. A card decline already has its ISO 8583 code. */
type Column = 'status' | 'page';

/** The provider's refusals. A 409 is not a refusal: something else happened under our key. */
export const REFUSALS = refusalTable<Column>([
  { page: 'declined', means: declineBy('05', 'NONE') },
  // Canceled by the payer.
  { page: 'canceled', means: declineBy('17', 'NONE') },
  ...BY_STATUS,
]);

/** Returns the outcome of a response with an error status, given its error. */
export function fromRefusal(status: number, answer: Answer): Outcome {
  const meaning = isError(answer) ? REFUSALS({ status }) : undefined;
  return refusedOutcome(meaning, { status, refused: answer.error.param });
}

/** Returns the meaning of a page on which the payer did not consent; undefined for any other status. */
export function declineOfPage(page: string): DeclineReason | undefined {
  const meaning = REFUSALS({ page });
  return typeof meaning === 'object' ? meaning : undefined;
}
