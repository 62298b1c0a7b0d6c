import { setTimeout } from 'node:timers/promises';

/** Turns at the look-ups that payers' returns prompt: of one payment (or enrollment), they begin two seconds apart. */
export type LookUpTurns = {
  /**
   * Looks up a payment, or lets the caller have the look-up that another caller began after this one came. One that
   * began before cannot know what the payer has done since: if it leaves the payment open, the caller waits for the
   * next turn. Resolves without a look-up if too many wait already.
   */
  take(paymentId: string, lookUp: ReturnLookUp): Promise<void>;
};

/** A look-up that a payer's return prompts. */
export type ReturnLookUp = {
  ask(): Promise<unknown>;
  /** Resolves to false once there is nothing left to ask about. */
  isOpen(): Promise<boolean>;
  /** The evidence that the payer brought, if the provider is asked by it: only look-ups by the same one are shared. */
  readonly evidence: string;
};

type Turn = { readonly begunAtMs: number; readonly evidence: string; readonly over: Promise<void> };

const EVERY_MS = 2_000;
const MAX_REMEMBERED = 10_000;
/** Limits on the callers that wait, for one payment and for all; a caller beyond is told what is stored. */
const MAX_WAITING_FOR_ONE = 5;
const MAX_WAITING = 40;
/** A caller waits this many turns at most, since others may keep taking them with evidence of their own. */
const MAX_TURNS = 5;

/** Creates the turns of one process, without any taken. @param everyMs least time from one look-up to the next. */
export function createLookUpTurns(everyMs = EVERY_MS): LookUpTurns {
  const turns = new Map<string, Turn>();
  const waiting = new Map<string, number>();
  let allWaiting = 0;

  const restMs = ({ begunAtMs }: Turn) => Math.max(0, begunAtMs + everyMs - performance.now());

  async function begin(paymentId: string, { ask, evidence }: ReturnLookUp): Promise<void> {
    turns.delete(paymentId);
    const [oldest] = turns.keys();
    if (oldest !== undefined && turns.size >= MAX_REMEMBERED) turns.delete(oldest);
    const begunAtMs = performance.now();
    const asking = ask();
    turns.set(paymentId, { begunAtMs, evidence, over: asking.then(ignore, ignore) });
    await asking;
  }

  async function wait(paymentId: string, lookUp: ReturnLookUp, cameAtMs: number): Promise<void> {
    const waitedFor = new Set<Turn>();
    while (waitedFor.size < MAX_TURNS) {
      const turn = turns.get(paymentId);
      if (!turn || restMs(turn) === 0) return begin(paymentId, lookUp);
      if (turn.begunAtMs > cameAtMs && turn.evidence === lookUp.evidence) return turn.over;
      waitedFor.add(turn);
      await Promise.race([turn.over, setTimeout(restMs(turn))]);
      if (!(await lookUp.isOpen())) return;
      await setTimeout(restMs(turn));
    }
  }

  return {
    async take(paymentId, lookUp) {
      const cameAtMs = performance.now();
      const turn = turns.get(paymentId);
      if (!turn || restMs(turn) === 0) return begin(paymentId, lookUp);
      const ahead = waiting.get(paymentId) ?? 0;
      if (ahead >= MAX_WAITING_FOR_ONE || allWaiting >= MAX_WAITING) return;
      waiting.set(paymentId, ahead + 1);
      allWaiting += 1;
      try {
        await wait(paymentId, lookUp, cameAtMs);
      } finally {
        const left = (waiting.get(paymentId) ?? 1) - 1;
        if (left > 0) waiting.set(paymentId, left);
        else waiting.delete(paymentId);
        allWaiting -= 1;
      }
    },
  };
}

const ignore = () => {};
