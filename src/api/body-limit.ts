import type { DescMethod } from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import type { FastifyRequest } from 'fastify';
import { ServiceError } from '#src/service-error.ts';

/** Limit on the size of a body, as sent and after decompression. */
export const BODY_LIMIT_BYTES = 256 * 1024;

/** Limit on the size of an operator's body, which may be a whole catalogue, or a provider's report. */
export const LARGE_BODY_BYTES = 16 * 1024 * 1024;

/**
 * The largest message that clients of gRPC accept, unless they are told otherwise; and what the listener holds for a
 * slow client. REST sends longer responses in pieces.
 */
const RPC_RESPONSE_BYTES = 4 * 1024 * 1024;

/** The limits on the bodies of an rpc. */
export type BodyLimit<Call> = {
  /** Limit on the request in bytes, as sent and after decompression. */
  readonly bytes: number;
  /**
   * Called before more than BODY_LIMIT_BYTES of a request are read.
   *
   * @throws ServiceError SERVICE_UNAVAILABLE if the process has no room for another large body.
   */
  readonly admitLarge: (call: Call) => void;
  /** Limit on the response over the rpc protocols in bytes, before compression. */
  readonly rpcResponseBytes: number;
};

/**
 * Returns the limits on the bodies of an rpc. Operators' calls that change something may have large bodies.
 *
 * @param admitLarge undefined for services of accounts.
 */
export function bodyLimitOf<Call>(
  { idempotency }: DescMethod,
  admitLarge: BodyLimit<Call>['admitLarge'] | undefined,
): BodyLimit<Call> {
  const rpcResponseBytes = admitLarge ? RPC_RESPONSE_BYTES : Number.POSITIVE_INFINITY;
  const onlyReads = idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
  if (!admitLarge || onlyReads) return { bytes: BODY_LIMIT_BYTES, admitLarge: () => {}, rpcResponseBytes };
  return { bytes: LARGE_BODY_BYTES, admitLarge, rpcResponseBytes };
}

/**
 * Admits a body before any of it is read.
 *
 * @throws ServiceError SERVICE_UNAVAILABLE if it may be large, and there is no room.
 */
export function admitBody<Call>(limit: BodyLimit<Call>, request: FastifyRequest, call: Call): void {
  if (mayBeLarge(request)) limit.admitLarge(call);
}

/** Reports whether a body may have more than BODY_LIMIT_BYTES. */
export function mayBeLarge({ headers }: Pick<FastifyRequest, 'headers'>): boolean {
  // Without a length, any length may follow.
  return Number(headers['content-length'] ?? Number.POSITIVE_INFINITY) > BODY_LIMIT_BYTES;
}

/** Checks the size of a response over an rpc protocol. @throws ServiceError NOT_SUPPORTED that says how to get it. */
export function requireSendable(
  bytes: Uint8Array,
  { rpcResponseBytes }: Pick<BodyLimit<never>, 'rpcResponseBytes'>,
): void {
  if (bytes.length <= rpcResponseBytes) return;
  const message =
    'the response is larger than 4 MiB; make the call over REST, or ask for one connection at a time (connection_id)';
  throw new ServiceError('NOT_SUPPORTED', message);
}

/** Returns the refusal of a request. @param what its body, and the measure: `the body is larger`. */
export function tooLarge(what: string): ServiceError {
  return new ServiceError(
    'REQUEST_TOO_LARGE',
    `${what} than 256 KiB (a change of the catalogue, or a settlement report: 16 MiB)`,
  );
}
