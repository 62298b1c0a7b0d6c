import type { JsonObject } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import type { Capabilities } from '#src/connectors/port/capabilities.ts';
import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { freePort } from '../support/free-port.ts';
import { brokenAnswers, ENDLESS_ANSWERS } from './broken-answers.ts';
import { httpAnswer, type Script, type ScriptedServer } from './scripted-server.ts';

const CALLS = ['capture', 'cancel', 'refund', 'complete', 'lookUp', 'repeatOperation'] as const;

/** A connector's call other than `pay`, with the provider's responses to it. */
export type ConformingCall = {
  readonly name: (typeof CALLS)[number];
  /** Distinguishes calls with the same name, such as look-ups of different kinds. */
  readonly of?: string;
  /** Makes the call, always for the same transaction. */
  make(connection: ProviderConnection): Promise<Outcome> | undefined;
  /** Text that the request must contain: our transaction's id, or a key derived from it. */
  readonly key: string;
  /** The provider's response on success. */
  readonly approval: Answer;
  /** Kind of the outcome on success, if the provider only confirms receipt and reports the outcome by notification. */
  readonly approvedAs?: 'pending';
  /** Other responses, and the kind of outcome that each must become. */
  readonly answers: readonly {
    readonly name: string;
    readonly outcome: Outcome['kind'];
    readonly answer: Answer;
  }[];
};

type Answer = { readonly status: number; readonly body: JsonObject };

/** Arguments of the calls under test. */
export type CallSuite = {
  serve(script: Script): Promise<ScriptedServer>;
  connect(baseUrl: string, timeoutMs?: number): ProviderConnection;
  capabilities(): Capabilities;
  /** Deadline of a call, in milliseconds: short for a broken response that nothing else ends. */
  timeoutOf(brokenAnswer?: string): number;
  /** Time after its deadline by which a call must have ended. */
  readonly slackMs: number;
};

/**
 * Checks every call against the rules of `pay`: not_sent only if it is certain that nothing was sent, unknown if it may have
 * been sent; sent once; ended by its deadline. A look-up or a repeat that learns nothing is unknown, whatever happened
 * to its request.
 */
export function describeCalls(calls: readonly ConformingCall[], suite: CallSuite): void {
  it('a connection supports exactly its capabilities', () => {
    const { captures, refunds, cancel, close, authorization } = suite.capabilities();
    const has = (name: ConformingCall['name']) => calls.some((call) => call.name === name);
    const connection = suite.connect('http://127.0.0.1:1');
    for (const name of CALLS) {
      expect([name, connection[name] !== undefined]).toEqual([name, has(name)]);
    }
    expect([captures > 0, refunds !== 'none', cancel]).toEqual([
      has('capture'),
      has('refund'),
      has('cancel'),
    ]);
    // A look-up closes a payment whose payer has yet to act.
    expect(close && !has('lookUp')).toBe(false);
    // An authorization that nobody can capture is useless.
    expect(authorization).toBe(has('capture'));
  });

  // All at once, since each takes its full time.
  for (const name of ENDLESS_ANSWERS) {
    it(`the outcome of every call is unknown at its deadline if it gets ${name}`, async () => {
      await Promise.all(calls.map((call) => expectUnknown(call, suite, name)));
    });
  }

  for (const call of calls) describe(`${call.name} ${call.of ?? ''}`.trim(), () => describeCall(call, suite));
}

function describeCall(call: ConformingCall, suite: CallSuite): void {
  const written = ({ status, body }: Answer): Script => {
    return (socket) => void socket.write(httpAnswer(status, JSON.stringify(body)));
  };

  const approvedAs = call.approvedAs ?? 'approved';
  it(`the outcome of a call is ${approvedAs}, with one request that contains our key`, async () => {
    const { outcome, requests } = await makeAt(written(call.approval), call, suite);
    expect(outcome).toMatchObject({ kind: approvedAs });
    expect(requests).toEqual([expect.stringContaining(call.key)]);
    // A cancel moves no money, so a provider need not name it.
    if (call.name !== 'cancel' && !(call.of ?? '').includes('cancel')) expectNamed(outcome);
  });

  it('a call is not_sent, or unknown for a look-up or a repeat, if the connection is refused', async () => {
    const outcome = await make(`http://127.0.0.1:${await freePort()}`, call, suite);
    const learns = call.name === 'lookUp' || call.name === 'repeatOperation';
    expect(outcome).toMatchObject({ kind: learns ? 'unknown' : 'not_sent' });
  });

  for (const name of Object.keys(brokenAnswers(call.approval))) {
    if (!ENDLESS_ANSWERS.has(name))
      it(`the outcome of a call is unknown if it gets ${name}`, () => expectUnknown(call, suite, name));
  }

  for (const { name, outcome: kind, answer } of call.answers) {
    it(`the outcome of a call is ${kind} if it gets ${name}`, async () => {
      const { outcome } = await makeAt(written(answer), call, suite);
      expect(outcome).toMatchObject({ kind });
      // An operation is over, whatever money its answer names. The money counts, and somebody has to compare it.
      if (kind === 'approved' && call.name !== 'cancel' && OTHER_MONEY.test(name))
        expect(outcome).toMatchObject({ alarm: true, money: { minorUnits: expect.any(BigInt) } });
    });
  }
}

const OTHER_MONEY = /another (amount|currency)/;

/** Checks that an outcome has the id by which the provider names the movement of money. */
export function expectNamed(outcome: Outcome | undefined): void {
  expect(outcome).toMatchObject({ providerPaymentId: expect.stringMatching(/^[^\s/]{1,255}$/) });
}

/** A provider's report of a second charge under our transaction's id, when another is recorded. */
export type SecondCharge = {
  /** The `providerPaymentId` of the recorded charge. */
  readonly recorded: string;
  /** Makes the look-up, or reads the signed notification, that reports the second charge. */
  report(connection: ProviderConnection): Promise<Outcome | undefined>;
  /** The provider's response to a request of the report. */
  answer(request: string): JsonObject;
};

/** Checks that the core can tell a second charge from the recorded one, and raises its alarm. */
export function describeSecondCharge({ recorded, report, answer }: SecondCharge, suite: CallSuite): void {
  it('a second charge is reported by its own id, or by an alarm that names both', async () => {
    const server = await suite.serve((socket, text) => {
      socket.write(httpAnswer(200, JSON.stringify(answer(text))));
    });
    const outcome = await report(suite.connect(`http://127.0.0.1:${server.port}`));
    if (outcome?.kind === 'approved' && !outcome.alarm) {
      expectNamed(outcome);
      expect(outcome.providerPaymentId).not.toBe(recorded);
      return;
    }
    if (outcome?.kind !== 'approved' && outcome?.kind !== 'unknown') throw new Error(outcome?.kind);
    const text = outcome.kind === 'unknown' ? outcome.detail : outcome.providerData.responseMessage;
    expect(text).toMatch(new RegExp(`^alarm: charged twice: .*${recorded}`));
    expect(outcome.alarm).toBe(true);
  });
}

async function expectUnknown(call: ConformingCall, suite: CallSuite, brokenAnswer: string): Promise<void> {
  const script = brokenAnswers(call.approval)[brokenAnswer] as Script;
  const { outcome, requests } = await untilAsked(() => makeAt(script, call, suite, brokenAnswer));
  expect([call.name, outcome]).toMatchObject([call.name, { kind: 'unknown' }]);
  expect(requests).toHaveLength(1);
}

/**
 * Makes calls until all have reached the provider, at most five times: if the machine stalls for a moment, a short
 * deadline may pass before anything is sent.
 *
 * @param calls their number, each with at least one request.
 */
export async function untilAsked<T extends { readonly requests: readonly string[] }>(
  make: () => Promise<T>,
  calls = 1,
): Promise<T> {
  for (let i = 1; ; i++) {
    const made = await make();
    if (made.requests.length >= calls || i === 5) return made;
  }
}

async function makeAt(
  script: Script,
  call: ConformingCall,
  suite: CallSuite,
  brokenAnswer?: string,
): Promise<{ outcome: Outcome | undefined; requests: readonly string[] }> {
  const server = await suite.serve(script);
  const outcome = await make(`http://127.0.0.1:${server.port}`, call, suite, brokenAnswer);
  return { outcome, requests: server.requests };
}

/** Makes a call and checks that it ends in time. */
async function make(
  baseUrl: string,
  call: ConformingCall,
  suite: CallSuite,
  brokenAnswer?: string,
): Promise<Outcome | undefined> {
  const timeoutMs = suite.timeoutOf(brokenAnswer);
  const startedMs = performance.now();
  const outcome = await call.make(suite.connect(baseUrl, timeoutMs));
  expect(performance.now() - startedMs).toBeLessThan(timeoutMs + suite.slackMs);
  return outcome;
}
