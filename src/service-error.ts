/**
 * Every way in which a call is refused, and how each protocol says it. One catalogue, two renderings (api/errors.ts).
 * `status` is HTTP's; `rpc` is the name of a google.rpc.Code.
 */
export const REASONS = {
  INVALID_PARAMETERS: { status: 400, rpc: 'InvalidArgument', title: 'Invalid parameters' },
  INVALID_REQUEST: { status: 400, rpc: 'InvalidArgument', title: 'Invalid request' },
  IDEMPOTENCY_KEY_MISSING: { status: 400, rpc: 'InvalidArgument', title: 'Idempotency key missing' },
  PAYMENT_METHOD_NOT_AVAILABLE: {
    status: 400,
    rpc: 'InvalidArgument',
    title: 'Payment method not available',
  },
  CUSTOMER_NOT_FOUND: { status: 400, rpc: 'InvalidArgument', title: 'Customer not found' },
  CHECKOUT_SESSION_NOT_FOUND: { status: 400, rpc: 'InvalidArgument', title: 'Checkout session not found' },
  VAULTED_TOKEN_NOT_FOUND: { status: 400, rpc: 'InvalidArgument', title: 'Vaulted token not found' },
  INVALID_AMOUNT: { status: 400, rpc: 'FailedPrecondition', title: 'Invalid amount' },
  CURRENCY_NOT_ALLOWED: { status: 400, rpc: 'InvalidArgument', title: 'Currency not allowed' },
  INVALID_STATUS: { status: 400, rpc: 'FailedPrecondition', title: 'Invalid status' },
  OPERATION_NOT_SUPPORTED: { status: 400, rpc: 'FailedPrecondition', title: 'Operation not supported' },
  INVALID_CREDENTIALS: { status: 401, rpc: 'Unauthenticated', title: 'Invalid credentials' },
  AUTHORIZATION_REQUIRED: { status: 403, rpc: 'PermissionDenied', title: 'Authorization required' },
  PAYMENT_NOT_FOUND: { status: 404, rpc: 'NotFound', title: 'Payment not found' },
  TRANSACTION_NOT_FOUND: { status: 404, rpc: 'NotFound', title: 'Transaction not found' },
  WEBHOOK_NOT_FOUND: { status: 404, rpc: 'NotFound', title: 'Webhook not found' },
  DELIVERY_NOT_FOUND: { status: 404, rpc: 'NotFound', title: 'Delivery not found' },
  NOT_FOUND: { status: 404, rpc: 'Unimplemented', title: 'Not found' },
  METHOD_NOT_ALLOWED: { status: 405, rpc: 'Unimplemented', title: 'Method not allowed' },
  OPERATION_IN_PROGRESS: { status: 409, rpc: 'Aborted', title: 'Operation in progress' },
  REQUEST_IN_PROGRESS: { status: 409, rpc: 'Aborted', title: 'Request in progress' },
  WEBHOOK_LIMIT_REACHED: { status: 409, rpc: 'FailedPrecondition', title: 'Webhook limit reached' },
  WEBHOOK_OFF: { status: 409, rpc: 'FailedPrecondition', title: 'Webhook is off' },
  REQUEST_TOO_LARGE: { status: 413, rpc: 'ResourceExhausted', title: 'Request too large' },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, rpc: 'InvalidArgument', title: 'Unsupported media type' },
  IDEMPOTENCY_KEY_REUSED: { status: 422, rpc: 'FailedPrecondition', title: 'Idempotency key reused' },
  RATE_LIMITED: { status: 429, rpc: 'ResourceExhausted', title: 'Too many requests' },
  SERVICE_UNAVAILABLE: { status: 503, rpc: 'Unavailable', title: 'Service unavailable' },
  INTERNAL_ERROR: { status: 500, rpc: 'Internal', title: 'Internal error' },
} as const;

/** Why a payment was refused: a code of the closed list. */
export type Reason = keyof typeof REASONS;

/** Why a field is refused. */
export type FieldCode =
  | 'REQUIRED'
  | 'INVALID_TYPE'
  | 'INVALID_FORMAT'
  | 'OUT_OF_RANGE'
  | 'TOO_LONG'
  | 'TOO_MANY'
  | 'NOT_ALLOWED';

/** A field at fault. `field` is its path (`additional_data.order.items[0].quantity`); `message` never holds its value. */
export type FieldError = { readonly field: string; readonly code: FieldCode; readonly message: string };

/**
 * A call is refused. But for REQUEST_IN_PROGRESS and INTERNAL_ERROR nothing was sent to a provider. `message` is shown to the caller: it names fields and limits,
 * never a value.
 */
export class ServiceError extends Error {
  override readonly name = 'ServiceError';
  readonly reason: Reason;
  readonly fields: readonly FieldError[];
  /** After how many seconds a retry makes sense. */
  readonly retryAfterS: number | undefined;

  constructor(
    reason: Reason,
    message: string,
    options: { fields?: readonly FieldError[]; retryAfterS?: number; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.reason = reason;
    this.fields = options.fields ?? [];
    this.retryAfterS = options.retryAfterS;
  }
}

/** One message for every way in which credentials are wrong: it does not reveal which. */
export const INVALID_CREDENTIALS_MESSAGE = 'public-api-key or private-secret-key is missing or wrong';

/** The refusal of one or more fields. */
export function invalidParameters(fields: readonly FieldError[]): ServiceError {
  return new ServiceError('INVALID_PARAMETERS', fields.map((f) => `${f.field}: ${f.message}`).join('; '), {
    fields,
  });
}
