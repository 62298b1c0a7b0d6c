import { ApiError } from './api-error.ts';
import type { Behaviour } from './behaviour.ts';
import { type JsonRecord, text } from './request-body.ts';

/** The behaviours of wallets' tokens, by the text that they contain. The first match counts. */
const BEHAVIOURS: readonly (readonly [contained: string, behaviour: Behaviour])[] = [
  ['sandbox-declined', { kind: 'decline', responseCode: '05' }],
  ['sandbox-challenge', { kind: 'challenge', ends: 'passed' }],
  ['sandbox', { kind: 'approve' }],
];

/** The card behind every token. */
const NUMBER = '4111111111111111';
const CARD = { card_brand: 'VISA', card_exp_month: 12, card_exp_year: 30, card_funding: 'CREDIT' };

/**
 * Reads the token of a wallet (`APPLE_PAY`, `GOOGLE_PAY`), which stands for a card.
 *
 * @throws ApiError 422 if it is not a token of the sandbox.
 */
export function readToken(token: JsonRecord): { number: string; behaviour: Behaviour; wallet: string } {
  const wallet = text(token, 'token.wallet', /^(APPLE|GOOGLE)_PAY$/);
  const data = text(token, 'token.data', /(?:)/);
  const behaviour = BEHAVIOURS.find(([contained]) => data.includes(contained))?.[1];
  if (!behaviour) throw new ApiError(422, 'invalid_request', 'is not a token of the sandbox', 'token.data');
  return { number: NUMBER, behaviour, wallet };
}

/** Returns the fields of a response that describe the card behind a wallet's token. */
export function shownWallet(wallet: string): object {
  return { wallet, ...CARD };
}
