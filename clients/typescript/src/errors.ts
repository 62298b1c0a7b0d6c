import type { Problem } from './operations.ts';

/** The service's reasons for refusing a call, and the client's reasons for not knowing a call's result. */
export type ErrorCode = Problem['code'] | 'NO_RESPONSE' | 'UNREADABLE_RESPONSE';

/** A faulty field of the request. */
export type FieldFault = Problem['errors'][number];

/** Thrown for a call that was refused, or whose result is unknown. `code` tells which. */
export class PaymentsError extends Error {
  override readonly name = 'PaymentsError';
  readonly code: ErrorCode;
  /** The HTTP status; 0 if there was no response. */
  readonly status: number;
  /** The faulty fields; empty if there are none. */
  readonly errors: readonly FieldFault[];
  /** Identifies the call: quote it to support. */
  readonly requestId: string | undefined;
  /** Seconds after which a retry makes sense. */
  readonly retryAfterS: number | undefined;
  /** The call's key. If `mayHaveHappened` is true, repeat the call with this key and no other. */
  readonly idempotencyKey: string | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    details: {
      readonly status?: number;
      readonly errors?: readonly FieldFault[];
      readonly requestId?: string | undefined;
      readonly retryAfterS?: number | undefined;
      readonly idempotencyKey?: string | undefined;
      readonly cause?: unknown;
    } = {},
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.status = details.status ?? 0;
    this.errors = details.errors ?? [];
    this.requestId = details.requestId;
    this.retryAfterS = details.retryAfterS;
    this.idempotencyKey = details.idempotencyKey;
  }

  /** Returns true if money may have moved: the outcome is unknown until the call is repeated with its key. */
  get mayHaveHappened(): boolean {
    return UNKNOWN.has(this.code);
  }
}

const UNKNOWN: ReadonlySet<ErrorCode> = new Set([
  'REQUEST_IN_PROGRESS',
  'INTERNAL_ERROR',
  'NO_RESPONSE',
  'UNREADABLE_RESPONSE',
]);
/** Reasons for refusing a call before anything was done. */
const NOT_NOW: ReadonlySet<ErrorCode> = new Set(['RATE_LIMITED', 'SERVICE_UNAVAILABLE']);

/** Returns true if a call may be sent again after an error. @param isRepeatable the call has a key, or changes nothing. */
export function mayRetry({ code }: { readonly code: ErrorCode }, isRepeatable: boolean): boolean {
  return NOT_NOW.has(code) || (isRepeatable && UNKNOWN.has(code));
}
