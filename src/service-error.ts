/**
 * Every reason for refusing a call, with its form in each protocol; api/errors.ts renders them. `status` is the HTTP
 * status, `rpc` the name of a google.rpc.Code.
 *
 * Unless the comment on a reason says otherwise, nothing was sent to a provider, and the idempotency key was not used
 * up.
 */
export const REASONS = {
  /** A field is missing or breaks a rule: correct the fields listed in `errors`, and send the request again. */
  INVALID_PARAMETERS: { status: 400, rpc: 'InvalidArgument', title: 'Invalid parameters' },
  /** The body or the path cannot be read as a request, or is nested too deeply: correct its encoding. */
  INVALID_REQUEST: { status: 400, rpc: 'InvalidArgument', title: 'Invalid request' },
  /** The header x-idempotency-key is missing, malformed or sent twice: send 1 to 255 printable ASCII characters. */
  IDEMPOTENCY_KEY_MISSING: { status: 400, rpc: 'InvalidArgument', title: 'Idempotency key missing' },
  /**
   * No route or payment method in the catalogue accepts this type, country or currency: offer the payer another way to
   * pay.
   */
  PAYMENT_METHOD_NOT_AVAILABLE: {
    status: 400,
    rpc: 'InvalidArgument',
    title: 'Payment method not available',
  },
  /**
   * The account has no stored customer with this id: send the payer's data, or another id. 404 if the path names it.
   */
  CUSTOMER_NOT_FOUND: { status: 400, rpc: 'InvalidArgument', title: 'Customer not found' },
  /**
   * The account has another customer with this merchant_customer_id: find that customer by this id, or choose another
   * id.
   */
  CUSTOMER_ID_DUPLICATED: { status: 400, rpc: 'AlreadyExists', title: 'Customer id duplicated' },
  /** The account has no open checkout session with this id: create one, or leave it out. 404 if the path names it. */
  CHECKOUT_SESSION_NOT_FOUND: { status: 400, rpc: 'InvalidArgument', title: 'Checkout session not found' },
  /**
   * The one-time token is unknown, used, expired, or for another checkout session: create a new token from the card.
   */
  TOKEN_NOT_FOUND: { status: 400, rpc: 'InvalidArgument', title: 'Token not found' },
  /** The account has no stored method with this token: ask the payer for the card or wallet again. */
  VAULTED_TOKEN_NOT_FOUND: { status: 400, rpc: 'InvalidArgument', title: 'Vaulted token not found' },
  /**
   * The stored method belongs to another customer: pay with one of the customer's own methods, or name the method's
   * customer.
   */
  INVALID_CUSTOMER_FOR_TOKEN: { status: 400, rpc: 'InvalidArgument', title: 'Invalid customer for token' },
  /** The stored method's type differs from the request's: send the stored method's type. */
  INCORRECT_PAYMENT_METHOD_TYPE: {
    status: 400,
    rpc: 'InvalidArgument',
    title: 'Incorrect payment method type',
  },
  /** An operation's amount exceeds what remains of the payment: request no more than the amount in the message. */
  INVALID_AMOUNT: { status: 400, rpc: 'FailedPrecondition', title: 'Invalid amount' },
  /** A known but unsupported field is set: leave it out. Ignoring it would change what is paid, or to whom. */
  NOT_SUPPORTED: { status: 400, rpc: 'InvalidArgument', title: 'Not supported' },
  /** An operation's currency differs from the payment's: use the payment's. */
  CURRENCY_NOT_ALLOWED: { status: 400, rpc: 'InvalidArgument', title: 'Currency not allowed' },
  /** The payment's status does not allow the operation: read the payment before you decide what to do. */
  INVALID_STATUS: { status: 400, rpc: 'FailedPrecondition', title: 'Invalid status' },
  /** No provider on the route supports the operation, or a partial one: use the alternative in the message. */
  OPERATION_NOT_SUPPORTED: { status: 400, rpc: 'FailedPrecondition', title: 'Operation not supported' },
  /** A key header is missing or wrong, or this call needs the secret key: check both keys. */
  INVALID_CREDENTIALS: { status: 401, rpc: 'Unauthenticated', title: 'Invalid credentials' },
  /** The keys belong to a different account than account_id: use that account's keys. */
  AUTHORIZATION_REQUIRED: { status: 403, rpc: 'PermissionDenied', title: 'Authorization required' },
  /**
   * The account does not allow calls from pages of this origin: serve the page from an allowed origin, or allow this
   * one.
   */
  ORIGIN_NOT_ALLOWED: { status: 403, rpc: 'PermissionDenied', title: 'Origin not allowed' },
  /** The account has no payment with this id: check the id and the account. */
  PAYMENT_NOT_FOUND: { status: 404, rpc: 'NotFound', title: 'Payment not found' },
  /** The payment has no transaction with this id that the operation can act on: check the id. */
  TRANSACTION_NOT_FOUND: { status: 404, rpc: 'NotFound', title: 'Transaction not found' },
  /** The account has no dispute with this id: check the id and the account. */
  DISPUTE_NOT_FOUND: { status: 404, rpc: 'NotFound', title: 'Dispute not found' },
  /** The account has no webhook with this id: check the id and the account. */
  WEBHOOK_NOT_FOUND: { status: 404, rpc: 'NotFound', title: 'Webhook not found' },
  /** The webhook has no delivery with this id: check the id, or list its deliveries. */
  DELIVERY_NOT_FOUND: { status: 404, rpc: 'NotFound', title: 'Delivery not found' },
  /** There is no such path or rpc: check the URL and the protocol. */
  NOT_FOUND: { status: 404, rpc: 'Unimplemented', title: 'Not found' },
  /** The path does not accept this HTTP method: use a method listed in the Allow header. */
  METHOD_NOT_ALLOWED: { status: 405, rpc: 'Unimplemented', title: 'Method not allowed' },
  /** Another operation on the payment is in progress: retry when it has finished. */
  OPERATION_IN_PROGRESS: { status: 409, rpc: 'Aborted', title: 'Operation in progress' },
  /**
   * The payment has as many transactions as allowed: make the operation at the provider itself, and it will be recorded
   * here.
   */
  OPERATION_LIMIT_REACHED: { status: 409, rpc: 'FailedPrecondition', title: 'Operation limit reached' },
  /**
   * The first call with this key has no response yet; it may have been sent, and the key is in use. Retry with the SAME
   * key until you get the response: with another key, the payer could be charged twice.
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
  /** The catalogue breaks rules: correct the fields listed in `errors`. */
  CATALOGUE_INVALID: { status: 400, rpc: 'InvalidArgument', title: 'Catalogue invalid' },
  /** A connection needs a secret that the service does not have: provide it first. */
  SECRET_MISSING: { status: 400, rpc: 'FailedPrecondition', title: 'Secret missing' },
  /** Another version is in force than the change was made to: read the catalogue, and make the change again. */
  VERSION_CHANGED: { status: 409, rpc: 'Aborted', title: 'Version changed' },
  /** The catalogue comes from a file: change the file. */
  CONFIGURED_BY_FILE: { status: 409, rpc: 'FailedPrecondition', title: 'Configured by file' },
  /** The connection's id stands for another account of the provider: give that account another id. */
  CONNECTION_REPOINTED: { status: 409, rpc: 'FailedPrecondition', title: 'Connection repointed' },
  /** The provider does not accept the credentials, or could not be asked: correct them, or try again. */
  CREDENTIALS_REFUSED: { status: 409, rpc: 'FailedPrecondition', title: 'Credentials refused' },
  /** The connection takes payments, or something is open there: retire it, and remove it later. */
  CONNECTION_IN_USE: { status: 409, rpc: 'FailedPrecondition', title: 'Connection in use' },
  /** The body exceeds the limit, as sent or after decompression: send less. */
  REQUEST_TOO_LARGE: { status: 413, rpc: 'ResourceExhausted', title: 'Request too large' },
  /** The Content-Type or the encoding is not supported: use one listed in the message. */
  UNSUPPORTED_MEDIA_TYPE: { status: 415, rpc: 'InvalidArgument', title: 'Unsupported media type' },
  /** The key belongs to an earlier, different request, which is unaffected: give a new request its own key. */
  IDEMPOTENCY_KEY_REUSED: { status: 422, rpc: 'FailedPrecondition', title: 'Idempotency key reused' },
  /** The account makes more calls than allowed: wait for Retry-After, then retry. */
  RATE_LIMITED: { status: 429, rpc: 'ResourceExhausted', title: 'Too many requests' },
  /** The service or its database cannot accept the call now: retry with the same key after Retry-After. */
  SERVICE_UNAVAILABLE: { status: 503, rpc: 'Unavailable', title: 'Service unavailable' },
  /** A fault of ours; something may have been sent. Retry with the SAME key, and report the request_id. */
  INTERNAL_ERROR: { status: 500, rpc: 'Internal', title: 'Internal error' },
} as const;

/** Reason for refusing a call: a name from the table. */
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

/** Maximum number of faulty fields that a refusal lists. */
export const MAX_FIELD_ERRORS = 20;

/**
 * A faulty field. `field` is the path (`additional_data.order.items[0].quantity`); `message` never contains the value.
 */
export type FieldError = { readonly field: string; readonly code: FieldCode; readonly message: string };

/** Reports a faulty field. */
export type Report = (field: string, code: FieldCode, message: string) => void;

const RESOURCE_NOT_FOUND = { status: 404, rpc: 'NotFound' } as const;

/** The refusal of a call. The caller sees the message, which names fields and limits but never repeats a value. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError';
  readonly reason: Reason;
  readonly fields: readonly FieldError[];
  /** Seconds after which a retry makes sense; undefined if only a changed request can succeed. */
  readonly retryAfterS: number | undefined;
  /** The HTTP status, and the name of a google.rpc.Code. */
  readonly status: number;
  readonly rpc: (typeof REASONS)[Reason]['rpc'];

  /**
   * @param message what happened, whether anything was sent, and what to do: clauses in lower case, joined by
   * semicolons, without a full stop. A message about a field is `field: message`.
   * @param options.fields the faulty fields.
   * @param options.retryAfterS seconds after which a retry makes sense.
   * @param options.isResource the call's path names an object that does not exist. This gives HTTP 404 and NOT_FOUND
   * even for a reason that is a bad request when a field names the object.
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

/**
 * The refusal of a call that exceeds a limit on concurrent calls. Such refusals are logged as totals, not one by one.
 */
export class OverloadError extends ServiceError {}

/** Jittered, so that callers refused together do not return together. */
const RETRY_AFTER_S = [1, 2, 3] as const;

/**
 * Creates the refusals for a limit, one for each value of Retry-After. @returns a function that picks one at random.
 */
export function overloadErrors(message: string): () => OverloadError {
  const errors = RETRY_AFTER_S.map(
    (retryAfterS) => new OverloadError('SERVICE_UNAVAILABLE', message, { retryAfterS }),
  );
  return () => errors[Math.floor(Math.random() * errors.length)] as OverloadError;
}

/** The same message for all wrong credentials, so that it does not reveal what was wrong. */
export const INVALID_CREDENTIALS_MESSAGE = 'public-api-key or private-secret-key is missing or wrong';

/** Returns the refusal of a call because of one field. @param message follows the field's name: `is required`. */
export function fieldRefusal(reason: Reason, field: string, code: FieldCode, message: string): ServiceError {
  return new ServiceError(reason, `${field}: ${message}`, { fields: [{ field, code, message }] });
}

/** Returns the refusal of an id that the account does not have, without revealing whether another account has it. */
export function unknownId(reason: Reason, field: string): ServiceError {
  return fieldRefusal(reason, field, 'NOT_FOUND', 'does not exist in this account');
}

/** Returns the refusal of a call whose path names an object that does not exist. */
export function missingResource(reason: Reason, field: string, message: string): ServiceError {
  const fields = [{ field, code: 'NOT_FOUND', message }] as const;
  return new ServiceError(reason, `${field}: ${message}`, { fields, isResource: true });
}

/**
 * Returns the refusal of one or more fields. Unsupported fields are reported alone: correcting the others first would
 * be pointless.
 */
export function invalidParameters(fields: readonly FieldError[]): ServiceError {
  const unsupported = fields.filter(({ code }) => code === 'NOT_SUPPORTED');
  const told = unsupported.length > 0 ? unsupported : fields;
  const reason = unsupported.length > 0 ? 'NOT_SUPPORTED' : 'INVALID_PARAMETERS';
  return new ServiceError(reason, describeFields(told), { fields: told });
}

/** Returns the refusal of one field. @param message follows the field's name: `is required`. */
export function invalidField(field: string, code: FieldCode, message: string): ServiceError {
  return invalidParameters([{ field, code, message }]);
}

/** Returns the refusal of a field that must not be present, or must not have this value. */
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

/** Describes faults in one line, each with its field. */
export function describeFields(faults: readonly Pick<FieldError, 'field' | 'message'>[]): string {
  return faults.map(({ field, message }) => `${field}: ${message}`).join('; ');
}
