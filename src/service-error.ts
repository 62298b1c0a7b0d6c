/**
 * Every reason for refusing a call, and its form in each protocol. One table, two renderings (api/errors.ts). `status`
 * is HTTP's; `rpc` is the name of a google.rpc.Code.
 *
 * Unless its sentence says otherwise, nothing was sent to a provider and the idempotency key was not used up.
 */
export const REASONS = {
  /** A field is missing or breaks a rule: correct the fields that `errors` names, and send the request again. */
  INVALID_PARAMETERS: { status: 400, rpc: 'InvalidArgument', title: 'Invalid parameters' },
  /** The body or the path cannot be read as a request, or is nested too deeply: correct its encoding. */
  INVALID_REQUEST: { status: 400, rpc: 'InvalidArgument', title: 'Invalid request' },
  /** The header x-idempotency-key is missing, malformed or sent twice: send 1 to 255 printable ASCII characters. */
  IDEMPOTENCY_KEY_MISSING: { status: 400, rpc: 'InvalidArgument', title: 'Idempotency key missing' },
  /** No route or method of the catalogue accepts this type, country or currency: offer the payer another way to pay. */
  PAYMENT_METHOD_NOT_AVAILABLE: {
    status: 400,
    rpc: 'InvalidArgument',
    title: 'Payment method not available',
  },
  /**
   * The account has no stored customer with this id: send the payer's data, or another id. 404 if the path names it.
   */
  CUSTOMER_NOT_FOUND: { status: 400, rpc: 'InvalidArgument', title: 'Customer not found' },
  /** The account has another customer with this merchant_customer_id: find that customer by it, or change it. */
  CUSTOMER_ID_DUPLICATED: { status: 400, rpc: 'AlreadyExists', title: 'Customer id duplicated' },
  /** The account has no open checkout session with this id: create one, or leave it out. 404 if the path names it. */
  CHECKOUT_SESSION_NOT_FOUND: { status: 400, rpc: 'InvalidArgument', title: 'Checkout session not found' },
  /** The one-time token is unknown, used, expired, or for another checkout session: make a new one from the card. */
  TOKEN_NOT_FOUND: { status: 400, rpc: 'InvalidArgument', title: 'Token not found' },
  /** The account has no stored method with this token: ask the payer for the card or wallet again. */
  VAULTED_TOKEN_NOT_FOUND: { status: 400, rpc: 'InvalidArgument', title: 'Vaulted token not found' },
  /** The stored method is another customer's: pay with one of the customer's own, or name its customer. */
  INVALID_CUSTOMER_FOR_TOKEN: { status: 400, rpc: 'InvalidArgument', title: 'Invalid customer for token' },
  /** The stored method is of another type than the request says: send the method's own type. */
  INCORRECT_PAYMENT_METHOD_TYPE: {
    status: 400,
    rpc: 'InvalidArgument',
    title: 'Incorrect payment method type',
  },
  /** An operation's amount exceeds the amount left of the payment: request no more than the message names. */
  INVALID_AMOUNT: { status: 400, rpc: 'FailedPrecondition', title: 'Invalid amount' },
  /** A known but unsupported field is set: leave it out. Ignoring it would change what is paid, or to whom. */
  NOT_SUPPORTED: { status: 400, rpc: 'InvalidArgument', title: 'Not supported' },
  /** An operation names another currency than the payment's: use the payment's. */
  CURRENCY_NOT_ALLOWED: { status: 400, rpc: 'InvalidArgument', title: 'Currency not allowed' },
  /** The payment's status does not allow the operation: read the payment before you decide what to do. */
  INVALID_STATUS: { status: 400, rpc: 'FailedPrecondition', title: 'Invalid status' },
  /** No provider that the route allows can do the operation, or do it in part: use the alternative in the message. */
  OPERATION_NOT_SUPPORTED: { status: 400, rpc: 'FailedPrecondition', title: 'Operation not supported' },
  /** A key header is missing or wrong, or this call needs the secret key: check both keys. */
  INVALID_CREDENTIALS: { status: 401, rpc: 'Unauthenticated', title: 'Invalid credentials' },
  /** The keys are another account's than the request's: use the keys of account_id. */
  AUTHORIZATION_REQUIRED: { status: 403, rpc: 'PermissionDenied', title: 'Authorization required' },
  /** The account does not allow calls from pages of this origin: serve the page from an allowed one, or allow it. */
  ORIGIN_NOT_ALLOWED: { status: 403, rpc: 'PermissionDenied', title: 'Origin not allowed' },
  /** The account has no payment with this id: check the id and the account. */
  PAYMENT_NOT_FOUND: { status: 404, rpc: 'NotFound', title: 'Payment not found' },
  /** The payment has no transaction with this id that the operation could act on: check the id. */
  TRANSACTION_NOT_FOUND: { status: 404, rpc: 'NotFound', title: 'Transaction not found' },
  /** The account has no webhook with this id: check the id and the account. */
  WEBHOOK_NOT_FOUND: { status: 404, rpc: 'NotFound', title: 'Webhook not found' },
  /** The webhook has no delivery with this id: check the id, or list its deliveries. */
  DELIVERY_NOT_FOUND: { status: 404, rpc: 'NotFound', title: 'Delivery not found' },
  /** There is no such path or rpc: check the address and the protocol. */
  NOT_FOUND: { status: 404, rpc: 'Unimplemented', title: 'Not found' },
  /** The path does not accept this HTTP method: use a method that the header Allow names. */
  METHOD_NOT_ALLOWED: { status: 405, rpc: 'Unimplemented', title: 'Method not allowed' },
  /** Another operation on the payment is in progress: retry when it has finished. */
  OPERATION_IN_PROGRESS: { status: 409, rpc: 'Aborted', title: 'Operation in progress' },
  /**
   * The payment has as many transactions as allowed: operate on it at the provider itself, which is recorded here.
   */
  OPERATION_LIMIT_REACHED: { status: 409, rpc: 'FailedPrecondition', title: 'Operation limit reached' },
  /**
   * The first call with this key has no response yet; it may have been sent, and the key is in use. Retry with the
   * SAME key until its response comes: under another key, the payer could be charged twice.
   */
  REQUEST_IN_PROGRESS: { status: 409, rpc: 'Aborted', title: 'Request in progress' },
  /** The customer has as many stored methods as allowed: unenroll one before you store another. */
  STORED_METHOD_LIMIT_REACHED: {
    status: 409,
    rpc: 'FailedPrecondition',
    title: 'Stored method limit reached',
  },
  /** The account has as many webhooks as allowed: delete one before you create another. */
  WEBHOOK_LIMIT_REACHED: { status: 409, rpc: 'FailedPrecondition', title: 'Webhook limit reached' },
  /** The webhook is switched off, so nothing is delivered to it: switch it on first. */
  WEBHOOK_OFF: { status: 409, rpc: 'FailedPrecondition', title: 'Webhook is off' },
  /** The body is larger than the limit, as sent or expanded: send less. */
  REQUEST_TOO_LARGE: { status: 413, rpc: 'ResourceExhausted', title: 'Request too large' },
  /** The Content-Type or the encoding is not supported: send a type or encoding that the message names. */
  UNSUPPORTED_MEDIA_TYPE: { status: 415, rpc: 'InvalidArgument', title: 'Unsupported media type' },
  /** The key belongs to an earlier, different request, which is unaffected: give a new request its own key. */
  IDEMPOTENCY_KEY_REUSED: { status: 422, rpc: 'FailedPrecondition', title: 'Idempotency key reused' },
  /** The account calls more often than allowed: wait as long as Retry-After says, then retry. */
  RATE_LIMITED: { status: 429, rpc: 'ResourceExhausted', title: 'Too many requests' },
  /** The service or its database cannot accept the call now: retry with the same key after Retry-After. */
  SERVICE_UNAVAILABLE: { status: 503, rpc: 'Unavailable', title: 'Service unavailable' },
  /** A fault of ours; something may have been sent. Retry with the SAME key, and report the request_id. */
  INTERNAL_ERROR: { status: 500, rpc: 'Internal', title: 'Internal error' },
} as const;

/** Reason for refusing a call: a name of the table. */
export type Reason = keyof typeof REASONS;

/** Reasons for refusing a field. */
export const FIELD_CODES = [
  'REQUIRED',
  'INVALID_TYPE',
  'INVALID_FORMAT',
  'OUT_OF_RANGE',
  'TOO_LONG',
  'TOO_MANY',
  'NOT_ALLOWED',
  'NOT_FOUND',
  'NOT_SUPPORTED',
] as const;

/** Reason for refusing a field. */
export type FieldCode = (typeof FIELD_CODES)[number];

/** Limit on the faulty fields that a refusal names. */
export const MAX_FIELD_ERRORS = 20;

/**
 * A faulty field. `field` is its path (`additional_data.order.items[0].quantity`); `message` never contains its
 * value.
 */
export type FieldError = { readonly field: string; readonly code: FieldCode; readonly message: string };

/** Reports a faulty field. */
export type Report = (field: string, code: FieldCode, message: string) => void;

const RESOURCE_NOT_FOUND = { status: 404, rpc: 'NotFound' } as const;

/** The refusal of a call. Its message is shown to the caller: it names fields and limits, and never repeats a value. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError';
  readonly reason: Reason;
  readonly fields: readonly FieldError[];
  /** Seconds after which a retry makes sense; undefined if only a changed request does. */
  readonly retryAfterS: number | undefined;
  /** HTTP's status, and the name of a google.rpc.Code. */
  readonly status: number;
  readonly rpc: (typeof REASONS)[Reason]['rpc'];

  /**
   * @param message what happened, whether anything was sent, and what to do: clauses in lower case, joined by
   * semicolons, without a full stop. A message about a field is `field: message`.
   * @param options.fields the faulty fields.
   * @param options.retryAfterS seconds after which a retry makes sense.
   * @param options.isResource the call's path names an object that does not exist: HTTP 404, NOT_FOUND, even for a
   * reason that is a bad request if a field names the object.
   * @param options.cause the error behind it, for the log only.
   */
  constructor(
    reason: Reason,
    message: string,
    options: {
      fields?: readonly FieldError[];
      retryAfterS?: number;
      isResource?: boolean;
      cause?: unknown;
    } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.reason = reason;
    this.fields = options.fields ?? [];
    this.retryAfterS = options.retryAfterS;
    const { status, rpc } = options.isResource ? RESOURCE_NOT_FOUND : REASONS[reason];
    this.status = status;
    this.rpc = rpc;
  }
}

/** The refusal of a call beyond a limit on concurrent calls. These are counted and logged in sum, not one by one. */
export class OverloadError extends ServiceError {}

/** Jittered, so that callers refused together do not return together. */
const RETRY_AFTER_S = [1, 2, 3] as const;

/** Makes the refusals of a limit, one for each value of Retry-After. @returns a function that picks one at random. */
export function overloadErrors(message: string): () => OverloadError {
  const errors = RETRY_AFTER_S.map(
    (retryAfterS) => new OverloadError('SERVICE_UNAVAILABLE', message, { retryAfterS }),
  );
  return () => errors[Math.floor(Math.random() * errors.length)] as OverloadError;
}

/** One message for all wrong credentials: it does not reveal what was wrong. */
export const INVALID_CREDENTIALS_MESSAGE = 'public-api-key or private-secret-key is missing or wrong';

/** Refuses a call because of one field. @param message continues the field's name: `is required`. */
export function fieldRefusal(reason: Reason, field: string, code: FieldCode, message: string): ServiceError {
  return new ServiceError(reason, `${field}: ${message}`, { fields: [{ field, code, message }] });
}

/** Refuses an id that the account does not have. It does not reveal whether another account has it. */
export function unknownId(reason: Reason, field: string): ServiceError {
  return fieldRefusal(reason, field, 'NOT_FOUND', 'does not exist in this account');
}

/** Refuses a call whose path names an object that does not exist. */
export function missingResource(reason: Reason, field: string, message: string): ServiceError {
  const fields = [{ field, code: 'NOT_FOUND', message }] as const;
  return new ServiceError(reason, `${field}: ${message}`, { fields, isResource: true });
}

/**
 * Refuses one or more fields. Unsupported fields are reported alone: correcting the others first would gain nothing.
 */
export function invalidParameters(fields: readonly FieldError[]): ServiceError {
  const unsupported = fields.filter(({ code }) => code === 'NOT_SUPPORTED');
  const told = unsupported.length > 0 ? unsupported : fields;
  const reason = unsupported.length > 0 ? 'NOT_SUPPORTED' : 'INVALID_PARAMETERS';
  return new ServiceError(reason, describeFields(told), { fields: told });
}

/** Refuses one field of a request. @param message continues the field's name: `is required`. */
export function invalidField(field: string, code: FieldCode, message: string): ServiceError {
  return invalidParameters([{ field, code, message }]);
}

/** Refuses a field that a request must not have, or not with this value. */
export function notAllowed(field: string, message: string): ServiceError {
  return invalidField(field, 'NOT_ALLOWED', message);
}

/** Runs a check. @throws ServiceError INVALID_PARAMETERS with every faulty field that it reports. */
export function requireFaultless(check: (report: Report) => void): void {
  const faults = faultsOf(check);
  if (faults.length > 0) throw invalidParameters(faults);
}

/** Returns the faulty fields that a check reports. */
export function faultsOf(check: (report: Report) => void): FieldError[] {
  const faults: FieldError[] = [];
  check((field, code, message) => faults.push({ field, code, message }));
  return faults;
}

/** Describes faults in one line: each field with its fault. */
export function describeFields(faults: readonly Pick<FieldError, 'field' | 'message'>[]): string {
  return faults.map(({ field, message }) => `${field}: ${message}`).join('; ');
}
