import { BinaryReader } from '@bufbuild/protobuf/wire';
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import { ConnectError, type Interceptor } from '@connectrpc/connect';
import { type ErrorCode, type FieldFault, mayRetry, PaymentsError } from './errors.ts';
import { type Call, OPERATIONS } from './operations.ts';
import { type RetryOptions, withRetries } from './retry.ts';

/** The keys for a transport's calls, and how the calls are repeated. */
export type InterceptorOptions = RetryOptions & {
  readonly publicApiKey?: string;
  readonly privateSecretKey?: string;
  readonly operatorKey?: string;
};

/**
 * Creates the interceptor for a Connect, gRPC or gRPC-Web transport (@connectrpc/connect-node, connect-web). It sends
 * the keys, repeats a call with the same idempotency key, and explains its error: see paymentsErrorOf.
 *
 * A call's deadline (`timeoutMs`) covers all of its tries.
 */
export function paymentsInterceptor(options: InterceptorOptions): Interceptor {
  return (next) => async (request) => {
    const { header, method, stream, signal } = request;
    if (stream) return next(request);
    const keys = {
      'public-api-key': options.publicApiKey,
      'private-secret-key': options.privateSecretKey,
      'operator-key': options.operatorKey,
    };
    for (const [name, value] of Object.entries(keys)) if (value) header.set(name, value);
    const isRead = method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
    const takesKey = (OPERATIONS as Readonly<Record<string, Call>>)[method.localName]?.takesKey ?? false;
    if (takesKey && !header.has('x-idempotency-key')) header.set('x-idempotency-key', crypto.randomUUID());
    const attempt = async () => {
      try {
        return await next(request);
      } catch (error) {
        throw explained(error, header.get('x-idempotency-key') ?? undefined);
      }
    };
    const pauseOf = (error: unknown) => {
      const known = paymentsErrorOf(error);
      return known && mayRetry(known, isRead || takesKey) ? (known.retryAfterS ?? 0) : undefined;
    };
    return withRetries(attempt, pauseOf, options, signal);
  };
}

/** Returns the service's explanation of an error that a call threw; undefined for an error from anywhere else. */
export function paymentsErrorOf(error: unknown): PaymentsError | undefined {
  return error instanceof ConnectError && error.cause instanceof PaymentsError ? error.cause : undefined;
}

/** Connect's clients throw only Connect's own errors, so ours is the cause. */
function explained(error: unknown, idempotencyKey: string | undefined): ConnectError {
  const thrown = ConnectError.from(error);
  thrown.cause = toPaymentsError(thrown, idempotencyKey);
  return thrown;
}

function toPaymentsError(
  { rawMessage, metadata, details, cause }: ConnectError,
  idempotencyKey: string | undefined,
): PaymentsError {
  const reason = details.map(reasonOf).find((one) => one !== undefined);
  const seconds = Number(metadata.get('retry-after') ?? Number.NaN);
  const told = {
    idempotencyKey,
    cause,
    errors: details.flatMap(fieldFaults),
    requestId: metadata.get('x-request-id') ?? undefined,
    retryAfterS: Number.isFinite(seconds) ? seconds : undefined,
  };
  // An error without a reason comes from a proxy, or from our own side of the connection.
  return new PaymentsError(reason ?? 'NO_RESPONSE', rawMessage, told);
}

type Detail = ConnectError['details'][number];

/** Reads the reason of a google.rpc.ErrorInfo, its first field. */
function reasonOf(detail: Detail): ErrorCode | undefined {
  const [reason] = textsOf(detail, 'google.rpc.ErrorInfo', 1);
  return reason === undefined ? undefined : (text(reason) as ErrorCode);
}

/** Reads the faulty fields from a google.rpc.BadRequest: messages with a field, a description and a reason. */
function fieldFaults(detail: Detail): FieldFault[] {
  return textsOf(detail, 'google.rpc.BadRequest', 1).map((violation) => {
    const read = (field: number) => text(fieldsOf(violation, field)[0] ?? new Uint8Array());
    return { field: read(1), code: read(3) as FieldFault['code'], message: read(2) };
  });
}

function textsOf(detail: Detail, type: string, field: number): Uint8Array[] {
  return 'type' in detail && detail.type === type ? fieldsOf(detail.value, field) : [];
}

/** Returns every occurrence of a length-delimited field in a message. */
function fieldsOf(message: Uint8Array, wanted: number): Uint8Array[] {
  const reader = new BinaryReader(message);
  const found: Uint8Array[] = [];
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field === wanted) found.push(reader.bytes());
    else reader.skip(wireType);
  }
  return found;
}

function text(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}
