import { ApiError } from './api-error.ts';

/** What the simulated provider does with a call, beside approving it. */
export type Behaviour =
  | { readonly kind: 'approve' }
  /** Declined with an ISO 8583 response code. */
  | { readonly kind: 'decline'; readonly responseCode: string }
  /** Declined at acquirer ONE, approved at acquirer TWO. */
  | { readonly kind: 'decline_at_acquirer_one'; readonly responseCode: string }
  /** Recorded and answered only after a while, whether the client waits for it or not. */
  | { readonly kind: 'delay'; readonly delayMs: number }
  | { readonly kind: BehaviourBefore }
  | { readonly kind: BehaviourAfter };

/** Nothing is recorded: no answer is ever given, the connection is reset, or the answer is a 500. */
export type BehaviourBefore = 'hang_before' | 'reset_before' | 'error_before';

/** It is recorded first, and only the answer is as the name says. */
export type BehaviourAfter =
  | 'hang_after'
  | 'reset_after'
  | 'error_after'
  /** A 200 with an HTML page. */
  | 'html'
  /** It ends halfway. */
  | 'truncated'
  /** 10 MB. */
  | 'huge'
  /** A byte every tenth of a second. */
  | 'slow_drip'
  /** It tells one minor unit more than was recorded. */
  | 'wrong_amount'
  /** It tells XTS, ISO 4217's code for tests. */
  | 'wrong_currency'
  /** It comes twice on the same connection. */
  | 'duplicate_approval';

const BEFORE: ReadonlySet<string> = new Set<BehaviourBefore>(['hang_before', 'reset_before', 'error_before']);
const AFTER: ReadonlySet<string> = new Set<BehaviourAfter>([
  ...(['hang_after', 'reset_after', 'error_after'] as const),
  ...(['html', 'truncated', 'huge', 'slow_drip'] as const),
  ...(['wrong_amount', 'wrong_currency', 'duplicate_approval'] as const),
]);
const ORDER = /^sandbox:(?<name>[a-z_]+)(?::(?<argument>.*))?$/;
const MAX_DELAY_MS = 60_000;

/**
 * The behaviour that a call's `description` asks for: `sandbox:` and the name of a BehaviourBefore or BehaviourAfter,
 * `sandbox:decline:<ISO 8583 response code>`, or `sandbox:late_approval:<ms up to 60000>`. It goes before what the card
 * number asks for.
 *
 * @returns undefined when the description asks for nothing.
 * @throws ApiError 400 when it begins with `sandbox:` and asks for what does not exist.
 */
export function orderedBehaviour(description: string | undefined): Behaviour | undefined {
  if (!description?.startsWith('sandbox:')) return undefined;
  const { name = '', argument } = ORDER.exec(description)?.groups ?? {};
  if (argument === undefined && (BEFORE.has(name) || AFTER.has(name)))
    return { kind: name as BehaviourBefore | BehaviourAfter };
  if (name === 'decline' && argument && /^(?!00)[A-Z0-9]{2}$/.test(argument)) {
    return { kind: 'decline', responseCode: argument };
  }
  const delayMs = /^\d{1,5}$/.test(argument ?? '') ? Number(argument) : MAX_DELAY_MS + 1;
  if (name === 'late_approval' && delayMs <= MAX_DELAY_MS) return { kind: 'delay', delayMs };
  throw new ApiError(400, 'invalid_request', 'asks for a behaviour that does not exist', 'description');
}

/** Whether a behaviour keeps the call from being recorded. */
export function isBefore(behaviour: Behaviour): boolean {
  return BEFORE.has(behaviour.kind);
}
