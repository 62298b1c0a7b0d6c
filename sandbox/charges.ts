import { randomInt, randomUUID } from 'node:crypto';
import { type Behaviour, readOrder } from './behaviour.ts';
import { type Call, newEntry, newId } from './entries.ts';
import {
  CURRENCY,
  dueOf,
  readCommonDetails,
  readExpiry,
  readMoney,
  readPage,
  readTexts,
} from './entry-details.ts';
import { type LedgerEntry, NO_SUMS } from './ledger-entry.ts';
import { behaviourOf } from './magic-cards.ts';
import {
  boolean,
  integer,
  type JsonRecord,
  object,
  objects,
  optionalInteger,
  optionalObject,
  optionalText,
  text,
} from './request-body.ts';
import { readToken, shownWallet } from './wallet-tokens.ts';

/** Maximum number of captures of a charge, unless the request sets a lower one. */
export const MAX_CAPTURES = 10;
/** Period during which an authorization can be captured. */
export const AUTHORIZATION_VALID_MS = 7 * 24 * 60 * 60_000;
/** Time that a payer has for a challenge. */
const CHALLENGE_VALID_MS = 15 * 60_000;
const APPROVED = '00';
const APPROVE: Behaviour = { kind: 'approve' };
const MAX_INSTALLMENTS = 99;
const RETRIEVAL_REFERENCE_NUMBER_RANGE = 10 ** 12;
const AUTHORIZATION_CODE_RANGE = 36 ** 6;

/** Messages for ISO 8583 response codes (field 39). */
const RESPONSE_MESSAGES: Readonly<Record<string, string>> = {
  '00': 'Approved',
  '05': 'Do not honor',
  '14': 'Invalid card number',
  '21': 'Declined by the bank',
  '41': 'Lost card, pick up',
  '43': 'Stolen card, pick up',
  '51': 'Insufficient funds',
  '54': 'Expired card',
  '82': 'Invalid card verification value',
  '91': 'Issuer or switch inoperative',
};

/** The decision on a call: the entry to record, and how to respond. */
export type Decided = { readonly entry: LedgerEntry; readonly behaviour: Behaviour };

/**
 * Decides POST /v1/charges. The entry contains only the first and last digits of the card.
 *
 * @throws ApiError naming the field at fault.
 */
export function decideCharge(body: JsonRecord, call: Call, publicUrl: string): Decided {
  const id = newId('charge');
  const { amount, currency } = readMoney(body);
  const capture = boolean(body, 'capture');
  const card = readPayingCard(body);
  const order = readOrder(optionalText(body, 'description'));
  // A payer who passed 3-D Secure elsewhere is not challenged again.
  const isAuthenticated = optionalObject(body, 'three_d_secure') !== undefined;
  const byCard = card.behaviour;
  const behaviour = order.behaviour ?? (isAuthenticated && byCard.kind === 'challenge' ? APPROVE : byCard);
  const validMs = behaviour.kind === 'challenge' ? CHALLENGE_VALID_MS : AUTHORIZATION_VALID_MS;
  const expiry = {
    status: 'expired',
    // The caller's `expires_at` limits the payer's time to act, but does not shorten an authorization.
    atMs: readExpiry(behaviour.kind === 'challenge' ? body : {}, order, validMs),
  };
  const state = decideState(behaviour, call.acquirer, capture, expiry);
  const entry = newEntry({
    kind: 'charge',
    id,
    call,
    ...state,
    ...digitsOf(card),
    amount,
    currency,
    sums: state.status === 'approved' && capture ? { ...NO_SUMS, captured: amount, captures: 1 } : NO_SUMS,
    fields: {
      ...issuerFields(state),
      installments: integer(body, 'installments', { min: 1, max: MAX_INSTALLMENTS }),
      ...shownCard(card),
      challenge_url: state.status === 'challenge_required' ? `${publicUrl}/challenge/${id}` : null,
      soft_descriptor: optionalText(body, 'soft_descriptor') ?? null,
      ...readTexts(body),
      three_d_secure_setup_id: optionalText(body, 'three_d_secure_setup_id') ?? null,
      ...countSold(body),
    },
    details: {
      ...readCommonDetails(body, order),
      ...(capture && { captureOnApproval: true }),
      ...(behaviour.kind === 'challenge' && { challenge: behaviour.ends, page: readPage(body) }),
      maxCaptures: optionalInteger(body, 'max_captures', { min: 1, max: MAX_CAPTURES }) ?? MAX_CAPTURES,
    },
  });
  return { entry, behaviour };
}

/**
 * Decides POST /v1/verifications: whether the issuer would accept the card. It moves no money and requires no
 * challenge.
 *
 * @throws ApiError naming the field at fault.
 */
export function decideVerification(body: JsonRecord, call: Call): Decided {
  const card = readPayingCard(body);
  const order = readOrder(optionalText(body, 'description'));
  const behaviour = order.behaviour ?? card.behaviour;
  const responseCode = responseCodeOf(behaviour, call.acquirer);
  const state = { status: responseCode === APPROVED ? 'approved' : 'declined', responseCode };
  const entry = newEntry({
    kind: 'verification',
    call,
    ...state,
    ...digitsOf(card),
    amount: 0,
    currency: text(body, 'currency', CURRENCY),
    fields: {
      ...issuerFields(state),
      ...shownCard(card),
      ...readTexts(body),
    },
    details: readCommonDetails(body, order),
  });
  return { entry, behaviour };
}

/** Returns the fields of a charge's response that contain the issuer's decision. */
export function issuerFields({
  status,
  responseCode,
}: {
  status: string;
  responseCode?: string | undefined;
}) {
  return {
    response_code: responseCode ?? null,
    response_message: responseCode ? (RESPONSE_MESSAGES[responseCode] ?? 'Declined') : null,
    authorization_code: status === 'approved' ? randomAuthorizationCode() : null,
    retrieval_reference_number: responseCode ? randomRetrievalReferenceNumber() : null,
    network_transaction_id: status === 'approved' ? randomNetworkTransactionId() : null,
  };
}

type ChargeState = { status: string; responseCode?: string; due?: { status: string; atMs: number } };

function decideState(
  behaviour: Behaviour,
  acquirer: Call['acquirer'],
  capture: boolean,
  expiry: { status: string; atMs: number },
): ChargeState {
  if (behaviour.kind === 'challenge') {
    return { status: 'challenge_required', due: expiry };
  }
  const due = dueOf(behaviour, 'approved', 'declined');
  if (due) return { status: 'pending', due };
  const responseCode = responseCodeOf(behaviour, acquirer);
  if (responseCode !== APPROVED) return { status: 'declined', responseCode };
  return { status: 'approved', responseCode, ...(!capture && { due: expiry }) };
}

function digitsOf({ number }: { number: string }): { cardIin: string; cardLastFour: string } {
  const iinLength = number.length >= 16 ? 8 : 6;
  // In a number shorter than any card's, four digits stay hidden.
  const shown = number.length >= 12 ? iinLength : Math.max(0, number.length - 8);
  return { cardIin: number.slice(0, shown), cardLastFour: number.slice(-4) };
}

function shownCard(card: PayingCard): object {
  const { cardIin, cardLastFour } = digitsOf(card);
  return { card_iin: cardIin, card_last_four: cardLastFour, ...(card.wallet && shownWallet(card.wallet)) };
}

/** The card that a charge or a verification is for: sent, or behind a wallet's token. */
type PayingCard = {
  readonly number: string;
  readonly behaviour: Behaviour;
  /** The wallet whose token was sent; undefined for a card. */
  readonly wallet?: string;
};

function readPayingCard(body: JsonRecord): PayingCard {
  const token = optionalObject(body, 'token');
  if (token) return readToken(token);
  const { number } = readCard(object(body, 'card'));
  return { number, behaviour: behaviourOf(number) };
}

/** Checks the format of the card. Expiry and security code are not verified and not stored. */
function readCard(card: JsonRecord): { number: string } {
  integer(card, 'card.exp_month', { min: 1, max: 12 });
  integer(card, 'card.exp_year', { min: 0, max: 99 });
  optionalText(card, 'card.cvc', /^\d{3,4}$/);
  optionalText(card, 'card.holder');
  return { number: text(card, 'card.number', /^\d{8,19}$/) };
}

/** Counts order items and airline legs, so that the response proves that they arrived. */
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
  return APPROVED;
}

/** ISO 8583 field 38: six letters or digits. */
function randomAuthorizationCode(): string {
  return randomInt(AUTHORIZATION_CODE_RANGE).toString(36).toUpperCase().padStart(6, '0');
}

/** ISO 8583 field 37: twelve digits. */
function randomRetrievalReferenceNumber(): string {
  return randomInt(RETRIEVAL_REFERENCE_NUMBER_RANGE).toString().padStart(12, '0');
}

/** The card scheme's id of a transaction: fifteen letters or digits. */
function randomNetworkTransactionId(): string {
  return `SBX${randomUUID().replaceAll('-', '').slice(0, 12).toUpperCase()}`;
}
