import type { JsonObject } from '@bufbuild/protobuf';
import type { PaymentAttempt } from '#src/connectors/port/attempt.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import type { ConformingCall } from './conformance-calls.ts';

/** A provider's response to an attempt, and the kind of outcome that it must become. */
export type ConformingAnswer = {
  readonly name: string;
  readonly outcome: Outcome['kind'];
  /** The approval's by default. */
  readonly status: number | undefined;
  /** A card attempt by default. */
  attempt?(): PaymentAttempt;
  body(attempt: PaymentAttempt, approval: JsonObject): JsonObject;
};

/**
 * Describes a provider's response to an attempt; `body` may be a function of the attempt and its approval.
 */
export function row(
  outcome: Outcome['kind'],
  name: string,
  body: JsonObject | ConformingAnswer['body'],
  status?: number,
): ConformingAnswer {
  return { outcome, name, status, body: typeof body === 'function' ? body : () => body };
}

/** The approval of an attempt, with a change. */
export function changed(outcome: Outcome['kind'], name: string, change: object, status?: number) {
  return row(outcome, name, (_attempt, approval) => ({ ...approval, ...change }), status);
}

/** A response to another call. */
export function answer(
  outcome: Outcome['kind'],
  name: string,
  body: object,
  status = 200,
): ConformingCall['answers'][number] {
  return { outcome, name, answer: { status, body: body as JsonObject } };
}
