import { mayHoldCardNumber } from '#src/luhn.ts';
import { invalidField } from '#src/service-error.ts';
import type { Visit } from './visit.ts';

/**
 * Reads an operator's note from a form.
 *
 * @param most maximum number of characters.
 * @throws ServiceError INVALID_PARAMETERS if it is longer, or has what may be a card number.
 */
export function noteOf(visit: Pick<Visit, 'form'>, most: number): string {
  const note = visit.form('note').trim();
  if (note.length > most) {
    throw invalidField('note', 'TOO_LONG', `must have at most ${most} characters; nothing was saved`);
  }
  if (mayHoldCardNumber(note)) {
    const message = 'must not contain what may be a card number; nothing was saved';
    throw invalidField('note', 'NOT_ALLOWED', message);
  }
  return note;
}
