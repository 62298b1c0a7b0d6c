import type { DescField, DescMessage, JsonObject } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { CreatePaymentRequestSchema } from '#gen/payments/v1/payment_service_pb.js';
import type { PaymentAttempt } from '#src/connectors/port/attempt.ts';
import type { LookUp } from '#src/connectors/port/connector.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { CURRENCIES } from '#src/money.ts';
import { freePort } from '../support/free-port.ts';
import { lookUpOf } from './attempts.ts';
import { type CallSuite, expectNamed } from './conformance-calls.ts';
import { type ConformingClosing, describeClosing } from './conformance-closing.ts';
import { httpAnswer, type Script } from './scripted-server.ts';

type Answer = { readonly status: number; readonly body: JsonObject };

/** A local method of a connector, with the provider's responses. */
export type ConformingLocalMethod = {
  /** payment_method.type. */
  readonly type: string;
  /** A fresh attempt of the method. */
  attempt(): PaymentAttempt;
  /** A page of the provider's or a bank's, or instructions on our own page. */
  readonly shows: 'page' | 'instructions';
  /** The provider's response to a request that creates the code. */
  created(attempt: PaymentAttempt): Answer;
  /** Its response to a request that it refuses: nothing was created. */
  readonly refusal: Answer;
  /** Changes to the body of `created` that make it about other money. */
  readonly otherMoney: readonly ((body: JsonObject) => JsonObject)[];
  /** false: the provider keeps no idempotency key, so a lost creation is not repeated. */
  readonly isRepeated?: false;
  /** Absent at a provider without a look-up. */
  readonly lookUps?: {
    /** Facts that the look-up has besides the attempt, such as the reference of the code. */
    readonly over?: Partial<LookUp>;
    readonly answers: readonly LookedUpCode[];
  };
  /** The close of an unpaid code, if the method's capability says that it can be closed. */
  readonly closing?: ConformingClosing;
};

/** The provider's responses to a look-up of a code, and the outcome that they must become. */
export type LookedUpCode = {
  readonly name: string;
  readonly outcome: Outcome['kind'];
  answer(request: string, attempt: PaymentAttempt): Answer;
  /** The money that has arrived, in minor units, if the outcome must say so. */
  readonly received?: bigint;
};

/** Arguments of the checks: pays, and checks that the outcome came in time and has no secret. */
export type LocalSuite = CallSuite & {
  pay(connection: ReturnType<CallSuite['connect']>, attempt: PaymentAttempt): Promise<Outcome>;
};

/**
 * Checks a connector's local methods: one code for a key, a lost creation repeated once and never "failed", an end only by
 * the provider's word, and answers about other money that decide nothing.
 */
export function describeLocalMethods(rows: readonly ConformingLocalMethod[], suite: LocalSuite): void {
  it('every local method of the connection has its row, and terms that make sense', () => {
    const { localMethods, refunds } = suite.capabilities();
    expect(rows.map(({ type }) => type).sort()).toEqual(Object.keys(localMethods).sort());
    for (const row of rows) {
      const local = localMethods[row.type];
      if (!local) continue;
      const { least, default: byDefault, greatest } = local.expiry;
      expect(0 < least && least <= byDefault && byDefault <= greatest, row.type).toBe(true);
      expect(local.countries.join()).toMatch(/^[A-Z]{2}(,[A-Z]{2})*$/);
      expect(local.currencies.filter((currency) => !CURRENCIES.has(currency))).toEqual([]);
      expect(local.needs.filter((path) => !isField(path))).toEqual([]);
      expect([row.type, row.closing !== undefined]).toEqual([row.type, local.close]);
      if (local.refunds !== 'none') expect(refunds).not.toBe('none');
    }
  });
  for (const row of rows) {
    describe(`the local method ${row.type}`, () => {
      describeCreation(row, suite);
      describeLookUps(row, suite);
      if (row.closing) describeClosing(row.closing, suite, true);
    });
  }
}

function describeCreation(row: ConformingLocalMethod, suite: LocalSuite): void {
  const { createsAt, createsWith, writes } = creationsOf(row, suite);

  it(`the payer of a code sees ${row.shows}, and the same attempt is the same request`, async () => {
    const attempt = row.attempt();
    const { outcomes, requests } = await createsWith([writes(attempt), writes(attempt)], attempt, 2);
    for (const outcome of outcomes) expectShown(outcome, row.shows);
    expect(requests[0]).toContain(attempt.transactionId);
    expect(requests[1]).toBe(requests[0]);
  });

  it('a code is not_sent if the connection is refused, or if the provider refuses the request', async () => {
    expect(await createsAt(`http://127.0.0.1:${await freePort()}`)).toMatchObject({ kind: 'not_sent' });
    const { outcomes, requests } = await createsWith([send(row.refusal)]);
    expect([outcomes[0]?.kind, requests.length]).toEqual(['not_sent', 1]);
  });

  for (const [name, lose] of Object.entries(LOST)) {
    const isRepeated = row.isRepeated ?? true;
    it(`a creation that is lost by ${name} is repeated ${isRepeated ? 'once' : 'never'}, byte for byte`, async () => {
      const attempt = row.attempt();
      const { outcomes, requests } = await createsWith([lose, writes(attempt)], attempt);
      if (isRepeated) expectShown(outcomes[0], row.shows);
      else expect(outcomes[0]).toMatchObject({ kind: 'unknown' });
      expect(requests).toHaveLength(isRepeated ? 2 : 1);
      expect(new Set(requests).size).toBe(1);
    });
    it(`a creation that is lost by ${name} is unknown if its repeat is lost or refused, too`, async () => {
      for (const again of [lose, send(row.refusal)]) {
        const { outcomes, requests } = await createsWith([lose, again]);
        expect([outcomes[0]?.kind, requests.length]).toEqual(['unknown', isRepeated ? 2 : 1]);
      }
    });
  }

  it('a creation without an answer is unknown at its deadline, and not repeated after it', async () => {
    const { outcomes, requests } = await createsWith([() => {}], row.attempt(), 1, 500);
    expect([outcomes[0]?.kind, requests.length]).toEqual(['unknown', 1]);
  });

  it('an answer about other money is unknown, with an alarm', async () => {
    for (const change of row.otherMoney) {
      const attempt = row.attempt();
      const { status, body } = row.created(attempt);
      const { outcomes } = await createsWith([send({ status, body: change(body) })], attempt);
      expect(outcomes[0]).toMatchObject({ kind: 'unknown', alarm: true });
    }
  });
}

/** Ways to lose an answer before the deadline. */
const LOST: Readonly<Record<string, Script>> = {
  'a reset': (socket) => socket.resetAndDestroy(),
  'a 500': (socket) => void socket.write(httpAnswer(500, '{}')),
  'a 503 without JSON': (socket) => void socket.write(httpAnswer(503, 'busy')),
};

const send =
  ({ status, body }: Answer): Script =>
  (socket) =>
    void socket.write(httpAnswer(status, JSON.stringify(body)));

function creationsOf(row: ConformingLocalMethod, suite: LocalSuite) {
  const writes = (attempt: PaymentAttempt) => send(row.created(attempt));
  const createsAt = (baseUrl: string) => suite.pay(suite.connect(baseUrl), row.attempt());
  /** Creates a code, `times` times, at a provider that follows one script for each request. */
  const createsWith = async (
    scripts: readonly Script[],
    attempt = row.attempt(),
    times = 1,
    timeoutMs?: number,
  ) => {
    let at = 0;
    const server = await suite.serve((socket, text) => scripts[at++]?.(socket, text));
    const connection = suite.connect(`http://127.0.0.1:${server.port}`, timeoutMs);
    const outcomes: Outcome[] = [];
    for (let i = 0; i < times; i++) outcomes.push(await suite.pay(connection, attempt));
    return { outcomes, requests: server.requests };
  };
  return { writes, createsAt, createsWith };
}

function expectShown(outcome: Outcome | undefined, shows: ConformingLocalMethod['shows']): void {
  if (outcome?.kind !== 'awaits_payer') throw new Error(`the outcome is ${outcome?.kind}`);
  const { show, until } = outcome;
  if (until) expect(until.getTime()).not.toBeNaN();
  if (shows === 'page') {
    expect(show.page).toMatch(/^https?:/);
    return;
  }
  if (show.page !== undefined) throw new Error('the payer is sent to a page');
  const { text, number, account, document, image, barcode } = show.instructions;
  expect([text, number, account, document].some(Boolean)).toBe(true);
  expect(image ?? 'https:').toMatch(/^https:/);
  expect(document ?? 'https:').toMatch(/^https?:/);
  expect(barcode ?? '0').toMatch(/^\d+$/);
  expect(number ?? '0').toMatch(/^[\d .-]+$/);
}

function describeLookUps(row: ConformingLocalMethod, suite: LocalSuite): void {
  const { lookUps } = row;
  if (!lookUps) return;
  const attempt = row.attempt();
  const lookUp = async (script: Script) => {
    const server = await suite.serve(script);
    const connection = suite.connect(`http://127.0.0.1:${server.port}`);
    return connection.lookUp?.(lookUpOf(attempt, lookUps.over));
  };

  for (const { name, outcome: kind, answer, received } of lookUps.answers) {
    it(`the outcome of a code is ${kind} if a look-up finds ${name}`, async () => {
      const outcome = await lookUp((socket, text) => send(answer(text, attempt))(socket, text));
      expect(outcome).toMatchObject({ kind });
      if (kind === 'awaits_payer') expectShown(outcome, row.shows);
      if (kind === 'approved') expectNamed(outcome);
      const arrived = outcome && 'received' in outcome ? outcome.received : undefined;
      const { currency } = attempt.money;
      expect(arrived).toEqual(received === undefined ? undefined : { minorUnits: received, currency });
    });
  }

  it('the look-ups cover an open, a paid and an expired code', () => {
    const kinds = lookUps.answers.map(({ outcome }) => outcome);
    expect(kinds).toEqual(expect.arrayContaining(['awaits_payer', 'approved', 'expired']));
  });

  it('a look-up that learns nothing is unknown', async () => {
    for (const script of Object.values(LOST)) expect(await lookUp(script)).toMatchObject({ kind: 'unknown' });
  });
}

/** Returns true for the path of a field of a request, in .proto names. */
function isField(path: string): boolean {
  let message: DescMessage | undefined = CreatePaymentRequestSchema;
  for (const name of path.split('.')) {
    const field: DescField | undefined = message?.fields.find((one) => one.name === name);
    if (!field) return false;
    message = field.message;
  }
  return true;
}
