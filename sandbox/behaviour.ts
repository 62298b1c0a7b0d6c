import { ApiError } from './api-error.ts';
import { isEnding } from './disputes.ts';
import type { DisputeOrder, NotificationOrder, SettleWrong } from './ledger-entry.ts';

/** Behaviour of the simulated provider for one call. */
export type Behaviour =
  | { readonly kind: 'approve' }
  /** Declined with an ISO 8583 response code. */
  | { readonly kind: 'decline'; readonly responseCode: string }
  /** Declined at acquirer ONE, approved at acquirer TWO. */
  | { readonly kind: 'decline_at_acquirer_one'; readonly responseCode: string }
  /** The issuer requires the payer to pass a challenge (3-D Secure). `ends` is the result when the payer confirms. */
  | { readonly kind: 'challenge'; readonly ends: 'passed' | 'failed' | 'abandoned' }
  /** A cancellation fails because it is too late. */
  | { readonly kind: 'too_late' }
  /** Recorded, and responded to, only after a delay, even if the client disconnects. */
  | { readonly kind: 'delay'; readonly delayMs: number }
  /** Pending at first, then done or failed. */
  | { readonly kind: 'done_after' | 'fail_after'; readonly delayMs: number }
  | { readonly kind: BehaviourBefore }
  | { readonly kind: BehaviourAfter };

/** Nothing is recorded; the caller gets no response, a connection reset, a 500, or a 429 that refuses all its calls. */
export type BehaviourBefore = 'hang_before' | 'reset_before' | 'error_before' | 'refuse_before';

/** The call is recorded, but the response has the defect that the name describes. */
export type BehaviourAfter =
  | 'hang_after'
  | 'reset_after'
  | 'error_after'
  /** A 200 with an HTML page. */
  | 'html'
  /** The response breaks off halfway. */
  | 'truncated'
  /** 10 MB. */
  | 'huge'
  /** One byte every tenth of a second. */
  | 'slow_drip'
  /** The response shows one minor unit more than the ledger. */
  | 'wrong_amount'
  /** The response shows XTS, the ISO 4217 code for tests. */
  | 'wrong_currency'
  /** The response comes twice on the same connection. */
  | 'duplicate_approval';

/** Instructions in a call's description. */
export type Order = {
  /** undefined if the description contains only additions. */
  readonly behaviour?: Behaviour;
  readonly notify?: NotificationOrder;
  /** Time after which a payment expires unless the payer settles it or the merchant captures it. */
  readonly expireAfterMs?: number;
  /** A payment that waits for its payer cannot be closed. */
  readonly staysOpen?: boolean;
  /** Instructions for a payer who pays a code without acting on its page. */
  readonly payer?: PayerOrder;
  readonly dispute?: DisputeOrder;
  readonly settleWrong?: SettleWrong;
};

/** A payer who pays a code without acting on its page. */
export type PayerOrder =
  /** Only some time after the code has expired, which it does after `delayMs`. */
  | { readonly kind: 'paid_late'; readonly delayMs: number }
  /** At once, but the provider confirms it only after `delayMs`. */
  | { readonly kind: 'confirm_after'; readonly delayMs: number }
  /** Half of the amount, or half again as much. */
  | { readonly kind: 'underpaid' | 'overpaid' };

/** The payment to which instructions apply: a code, in particular a transfer of any amount, or any other. */
export type OrderOf = 'code' | 'transfer' | 'other';

const BEFORE: ReadonlySet<string> = new Set<BehaviourBefore>([
  ...(['hang_before', 'reset_before', 'error_before', 'refuse_before'] as const),
]);
const AFTER: ReadonlySet<string> = new Set<BehaviourAfter>([
  ...(['hang_after', 'reset_after', 'error_after'] as const),
  ...(['html', 'truncated', 'huge', 'slow_drip'] as const),
  ...(['wrong_amount', 'wrong_currency', 'duplicate_approval'] as const),
]);
const NOTIFY = new Map<string, NotificationOrder>([
  ['notify_twice', { isTwice: true }],
  ['notify_out_of_order', { isOutOfOrder: true }],
  ['notify_first', { isFirst: true }],
  ['notify_forged', { isForged: true }],
  ['notify_never', { isNever: true }],
]);
const SETTLE_WRONG: ReadonlySet<string> = new Set<SettleWrong>([
  ...(['missing', 'amount', 'currency', 'twice', 'late', 'payout', 'unknown'] as const),
  ...(['reversed', 'declined', 'fee'] as const),
]);
const ITEM = /^(?<name>[a-z_]+)(?::(?<argument>.*))?$/;
const MAX_DELAY_MS = 60_000;

/**
 * Reads the instructions in a call's `description`: `sandbox:`, then at most one behaviour and any of `notify_…`,
 * `expire_after`, `stay_open`, `dispute_after`, `settle_wrong` and, for a code, how its payer pays, separated by commas, as in `sandbox:error_after,notify_twice`. The behaviour takes
 * precedence over the card number's. README.md in this directory lists the names and effects.
 *
 * @throws ApiError 400 if it begins with `sandbox:` and contains an unknown instruction.
 */
export function readOrder(description: string | undefined, of: OrderOf = 'other'): Order {
  if (!description?.startsWith('sandbox:')) return {};
  let order: Order = {};
  for (const item of description.slice('sandbox:'.length).split(',')) {
    const { name = '', argument } = ITEM.exec(item)?.groups ?? {};
    const addition = readAddition(name, argument, order) ?? readPayer(name, argument, of);
    if (!addition && order.behaviour) throw unknownOrder();
    order = { ...order, ...(addition ?? { behaviour: readBehaviour(name, argument) }) };
  }
  return order;
}

/** Reports whether a behaviour prevents the call from being recorded. */
export function isBefore(behaviour: Behaviour): boolean {
  return BEFORE.has(behaviour.kind);
}

function readAddition(name: string, argument: string | undefined, order: Order): Order | undefined {
  if (name === 'expire_after') return { expireAfterMs: readDelay(argument) };
  if (name === 'notify_late') return { notify: { ...order.notify, lateMs: readDelay(argument) } };
  if (name === 'dispute_after') return { dispute: readDispute(argument) };
  if (name === 'settle_wrong') {
    if (!SETTLE_WRONG.has(argument ?? '')) throw unknownOrder();
    return { settleWrong: argument as SettleWrong };
  }
  if (argument !== undefined) return undefined;
  if (name === 'stay_open') return { staysOpen: true };
  const notify = NOTIFY.get(name);
  return notify && { notify: { ...order.notify, ...notify } };
}

/** Reads a time and an ending, such as 2000:won. Without an ending, the dispute stays open. */
function readDispute(argument = ''): DisputeOrder {
  const [delay, ending = 'open', ...more] = argument.split(':');
  if (!isEnding(ending) || more.length > 0) throw unknownOrder();
  return { afterMs: readDelay(delay), ending };
}

function readPayer(name: string, argument: string | undefined, of: OrderOf): Order | undefined {
  if (of === 'other') return undefined;
  if (name === 'paid_late' || name === 'confirm_after')
    return { payer: { kind: name, delayMs: readDelay(argument) } };
  const isAmount = (name === 'underpaid' || name === 'overpaid') && argument === undefined;
  return isAmount && of === 'transfer' ? { payer: { kind: name } } : undefined;
}

function readBehaviour(name: string, argument: string | undefined): Behaviour {
  if (argument === undefined) {
    if (BEFORE.has(name) || AFTER.has(name)) return { kind: name as BehaviourBefore | BehaviourAfter };
    if (name === 'too_late') return { kind: name };
    throw unknownOrder();
  }
  if (name === 'decline' && /^(?!00)[A-Z0-9]{2}$/.test(argument)) {
    return { kind: 'decline', responseCode: argument };
  }
  if (name === 'late_approval') return { kind: 'delay', delayMs: readDelay(argument) };
  if (name === 'done_after' || name === 'fail_after') return { kind: name, delayMs: readDelay(argument) };
  throw unknownOrder();
}

function readDelay(argument: string | undefined): number {
  const delayMs = /^\d{1,5}$/.test(argument ?? '') ? Number(argument) : MAX_DELAY_MS + 1;
  if (delayMs > MAX_DELAY_MS) throw unknownOrder();
  return delayMs;
}

function unknownOrder(): ApiError {
  return new ApiError(400, 'invalid_request', 'requests an unknown behaviour', 'description');
}
