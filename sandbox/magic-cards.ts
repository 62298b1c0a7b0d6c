import type { Behaviour } from './behaviour.ts';

/** A test card number that triggers a behaviour. `name` is a short name for tables and tests. */
export type MagicCard = {
  readonly number: string;
  readonly name: string;
  readonly behaviour: Behaviour;
  readonly description: string;
};

/**
 * Every test card number that triggers a behaviour. Any other number that passes the Luhn check is approved, whatever
 * its expiry.
 */
export const MAGIC_CARDS: readonly MagicCard[] = [
  decline('4000000000000002', 'DO_NOT_HONOR', '05'),
  decline('4000000000009995', 'INSUFFICIENT_FUNDS', '51'),
  decline('4000000000009987', 'REPORTED_LOST', '41'),
  decline('4000000000009979', 'REPORTED_STOLEN', '43'),
  decline('4000000000000069', 'EXPIRED_CARD', '54'),
  decline('4000000000000127', 'INVALID_SECURITY_CODE', '82'),
  decline('4000000000000119', 'ACQUIRER_CONTINGENCY', '91'),
  {
    number: '4000000000001000',
    name: 'NO_ANSWER',
    behaviour: { kind: 'hang_after' },
    description: 'Approved and recorded, but no response is sent.',
  },
  {
    number: '4000000000002008',
    name: 'RESET_AFTER_CHARGE',
    behaviour: { kind: 'reset_after' },
    description: 'Approved and recorded, then the connection is reset.',
  },
  {
    number: '4000000000003006',
    name: 'ERROR_AFTER_CHARGE',
    behaviour: { kind: 'error_after' },
    description: 'Approved and recorded, then the response is a 500.',
  },
  {
    number: '4000000000004004',
    name: 'UNREADABLE_ANSWER',
    behaviour: { kind: 'html' },
    description: 'Approved and recorded, then the response is an HTML page.',
  },
  {
    number: '4000000000005001',
    name: 'CONNECTION_REFUSED',
    behaviour: { kind: 'refuse_before' },
    description: 'Refused with a 429, as all calls of the connection would be, and not recorded.',
  },
  {
    number: '4000000000006009',
    name: 'DECLINED_AT_ACQUIRER_ONE',
    behaviour: { kind: 'decline_at_acquirer_one', responseCode: '05' },
    description: 'Declined (soft, 05) at acquirer ONE, approved at acquirer TWO.',
  },
  {
    number: '4000000000007007',
    name: 'APPROVED_AFTER_DELAY',
    behaviour: { kind: 'delay', delayMs: 3_000 },
    description: 'Approved and recorded, but the response comes only after 3 seconds.',
  },
  challenge('4000000000003105', 'CHALLENGE_PASSED', 'passed', 'is approved when the payer confirms'),
  challenge(
    '4000000000003204',
    'CHALLENGE_FAILED',
    'failed',
    'is declined (05) even when the payer confirms',
  ),
  challenge(
    '4000000000003303',
    'CHALLENGE_ABANDONED',
    'abandoned',
    'is never completed: it expires after 15 minutes',
  ),
];

const BEHAVIOURS = new Map(MAGIC_CARDS.map((card) => [card.number, card.behaviour]));
const APPROVE: Behaviour = { kind: 'approve' };
const NO_SUCH_CARD: Behaviour = { kind: 'decline', responseCode: '14' };

/** Returns the behaviour of a card number. A number that fails the Luhn check (ISO/IEC 7812-1) is declined with 14. */
export function behaviourOf(number: string): Behaviour {
  return BEHAVIOURS.get(number) ?? (passesLuhn(number) ? APPROVE : NO_SUCH_CARD);
}

/** Reports whether a string of digits passes the Luhn check (ISO/IEC 7812-1, annex B). */
export function passesLuhn(number: string): boolean {
  let sum = 0;
  for (let i = 0; i < number.length; i++) {
    const digit = number.charCodeAt(number.length - 1 - i) - 48;
    const weighted = i % 2 === 0 ? digit : digit * 2;
    sum += weighted > 9 ? weighted - 9 : weighted;
  }
  return sum % 10 === 0;
}

function decline(number: string, name: string, responseCode: string): MagicCard {
  return {
    number,
    name,
    behaviour: { kind: 'decline', responseCode },
    description: `Declined with ISO 8583 response code ${responseCode}.`,
  };
}

function challenge(
  number: string,
  name: string,
  ends: 'passed' | 'failed' | 'abandoned',
  end: string,
): MagicCard {
  const description = `The issuer requires a challenge (3-D Secure) that ${end}.`;
  return { number, name, behaviour: { kind: 'challenge', ends }, description };
}
