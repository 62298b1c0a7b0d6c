import { randomInt, randomUUID } from 'node:crypto';
import { type Behaviour, orderedBehaviour } from './behaviour.ts';
import type { LedgerEntry } from './ledger.ts';
import { behaviourOf } from './magic-cards.ts';
import {
  boolean,
  integer,
  type JsonRecord,
  object,
  objects,
  optionalObject,
  optionalText,
  text,
} from './request-body.ts';

/** The headers of a call that creates something. */
export type Call = {
  /** The caller's name for the attempt. A repeat gets the first answer. */
  readonly idempotencyKey: string;
  readonly acquirer: 'ONE' | 'TWO';
  readonly account: string;
};

const MAX_INSTALLMENTS = 99;
const RETRIEVAL_REFERENCE_NUMBER_RANGE = 10 ** 12;
const AUTHORIZATION_CODE_RANGE = 36 ** 6;

/** What the provider says of an ISO 8583 response code (field 39). */
const RESPONSE_MESSAGES: Readonly<Record<string, string>> = {
  '00': 'Approved',
  '05': 'Do not honor',
  '14': 'Invalid card number',
  '41': 'Lost card, pick up',
  '43': 'Stolen card, pick up',
  '51': 'Insufficient funds',
  '54': 'Expired card',
  '82': 'Invalid card verification value',
  '91': 'Issuer or switch inoperative',
};

/**
 * Reads POST /v1/charges and decides it. Of the card only its first and last digits go into the entry.
 *
 * @throws ApiError naming the field at fault.
 */
export function decideCharge(body: JsonRecord, call: Call): { entry: LedgerEntry; behaviour: Behaviour } {
  const amount = integer(body, 'amount', { min: 1, max: Number.MAX_SAFE_INTEGER });
  const currency = text(body, 'currency', /^[A-Z]{3}$/);
  const capture = boolean(body, 'capture');
  const installments = integer(body, 'installments', { min: 1, max: MAX_INSTALLMENTS });
  const card = readCard(object(body, 'card'));
  const description = optionalText(body, 'description');
  const behaviour = orderedBehaviour(description) ?? behaviourOf(card.number);
  const responseCode = responseCodeOf(behaviour, call.acquirer);
  const approved = responseCode === '00';
  const id = `ch_${randomUUID()}`;
  const status = approved ? 'approved' : 'declined';
  const cardIin = card.number.slice(0, card.number.length >= 16 ? 8 : 6);
  const cardLastFour = card.number.slice(-4);
  const answer = {
    object: 'charge',
    id,
    idempotency_key: call.idempotencyKey,
    account: call.account,
    acquirer: call.acquirer,
    status,
    response_code: responseCode,
    response_message: RESPONSE_MESSAGES[responseCode] ?? 'Declined',
    authorization_code: approved ? randomAuthorizationCode() : null,
    retrieval_reference_number: randomRetrievalReferenceNumber(),
    amount,
    currency,
    captured: approved && capture,
    installments,
    card_iin: cardIin,
    card_last_four: cardLastFour,
    reference: optionalText(body, 'reference') ?? null,
    description: description ?? null,
    three_d_secure_setup_id: optionalText(body, 'three_d_secure_setup_id') ?? null,
    ...countSold(body),
    created_at: new Date().toISOString(),
  };
  const entry: LedgerEntry = {
    id,
    idempotencyKey: call.idempotencyKey,
    kind: 'charge',
    acquirer: call.acquirer,
    status,
    responseCode,
    amount,
    currency,
    cardIin,
    cardLastFour,
    answerStatus: approved ? 201 : 402,
    answer: JSON.stringify(answer),
    details: undefined,
  };
  return { entry, behaviour };
}

/** Checks the card's form. Expiry and security code are accepted as they are, and forgotten. */
function readCard(card: JsonRecord): { number: string } {
  integer(card, 'card.exp_month', { min: 1, max: 12 });
  integer(card, 'card.exp_year', { min: 0, max: 99 });
  optionalText(card, 'card.cvc', /^\d{3,4}$/);
  optionalText(card, 'card.holder');
  return { number: text(card, 'card.number', /^\d{8,19}$/) };
}

/** What the provider makes of order and airline data: it shows that they came. */
function countSold(body: JsonRecord): { order_item_count: number; airline_leg_count: number } {
  const order = optionalObject(body, 'order');
  const airline = optionalObject(body, 'airline');
  return {
    order_item_count: order ? objects(order, 'order.items').length : 0,
    airline_leg_count: airline ? objects(airline, 'airline.legs').length : 0,
  };
}

function responseCodeOf(behaviour: Behaviour, acquirer: Call['acquirer']): string {
  if (behaviour.kind === 'decline') return behaviour.responseCode;
  if (behaviour.kind === 'decline_at_acquirer_one' && acquirer === 'ONE') return behaviour.responseCode;
  return '00';
}

/** ISO 8583 field 38: six letters and digits. */
function randomAuthorizationCode(): string {
  return randomInt(AUTHORIZATION_CODE_RANGE).toString(36).toUpperCase().padStart(6, '0');
}

/** ISO 8583 field 37: twelve digits. */
function randomRetrievalReferenceNumber(): string {
  return randomInt(RETRIEVAL_REFERENCE_NUMBER_RANGE).toString().padStart(12, '0');
}
