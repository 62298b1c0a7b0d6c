import type { JsonObject } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import type { LookUp } from '#src/connectors/port/connector.ts';
import { planClose } from '#src/payments/model/books.ts';
import type { CallSuite } from './conformance-calls.ts';
import { httpAnswer } from './scripted-server.ts';

/** The close of a payment that awaits its payer, at a provider that can close one. */
export type ConformingClosing = {
  /** A look-up of a payment whose payer has yet to act. */
  readonly query: LookUp;
  /** The beginning of the request that closes it; absent if only a completion by us could take the payer's money. */
  readonly request?: RegExp;
  /** The provider's response to a request. @param isClosed true from the request that closes the payment on. */
  answer(request: string, isClosed: boolean): JsonObject;
  /** A later look-up, if only that is certain that the payer has not paid at the last moment. */
  readonly later?: Partial<LookUp>;
};

const ENDED = expect.stringMatching(/^(expired|declined|not_sent)$/);

/**
 * Checks that a close ends a payment that awaits its payer, or that the core refuses its cancel by name.
 *
 * @param isLocal true for a code, whose method has its own terms.
 */
export function describeClosing(
  closing: ConformingClosing | undefined,
  suite: CallSuite,
  isLocal = false,
): void {
  const money = { minorUnits: 1n, currency: 'USD' };
  if (!closing) {
    it('a cancel of a payment that awaits its payer is refused by name', () => {
      expect(() => planClose(money, suite.capabilities())).toThrow(
        expect.objectContaining({ reason: 'OPERATION_NOT_SUPPORTED' }),
      );
    });
    return;
  }
  const { query, request: closes, later } = closing;
  /** Looks the payment up at a provider that responds to a close with this status. */
  const lookUp = async (asked: readonly LookUp[], status = 200) => {
    let isClosed = false;
    const closings: string[] = [];
    const server = await suite.serve((socket, text) => {
      const isClose = closes?.test(text) ?? false;
      if (isClose) closings.push(text);
      isClosed ||= isClose && status === 200;
      const body = isClose && status !== 200 ? {} : closing.answer(text, isClosed);
      socket.write(httpAnswer(isClose ? status : 200, JSON.stringify(body)));
    });
    const connection = suite.connect(`http://127.0.0.1:${server.port}`);
    const kinds: (string | undefined)[] = [];
    for (const one of asked) kinds.push((await connection.lookUp?.(one))?.kind);
    return { kind: kinds.at(-1), closings: closings.length };
  };
  const close = { ...query, close: true };

  describe('a payment that awaits its payer', () => {
    it('a payment that awaits its payer has ended after its close', async () => {
      if (!isLocal) expect(planClose(money, suite.capabilities()).type).toBe('CANCEL');
      const asked = later ? [close, { ...close, ...later }] : [close];
      expect(await lookUp(asked)).toEqual({ kind: ENDED, closings: closes ? 1 : 0 });
    });
    it('a payment that awaits its payer stays open without a close', async () => {
      expect(await lookUp([query])).toEqual({ kind: 'awaits_payer', closings: 0 });
    });
    it.runIf(closes)('a payment that awaits its payer has not ended if its close fails', async () => {
      const { kind, closings } = await lookUp([close], 500);
      expect([kind, closings]).toEqual([expect.stringMatching(/^(unknown|redirect)$/), 1]);
    });
  });
}
