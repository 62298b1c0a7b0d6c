import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonObject } from '@bufbuild/protobuf';
import { afterEach, describe, expect, it } from 'vitest';
import { redactOutcomes } from '#src/connectors/guards/redact-outcomes.ts';
import type { PaymentAttempt } from '#src/connectors/port/attempt.ts';
import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import type { Secret } from '#src/secret.ts';
import { freePort } from '../support/free-port.ts';
import { brokenAnswers, ENDLESS_ANSWERS } from './broken-answers.ts';
import { type ConformingAccount, describeAccount } from './conformance-account.ts';
import {
  type ConformingCall,
  describeCalls,
  describeSecondCharge,
  expectNamed,
  type SecondCharge,
  untilAsked,
} from './conformance-calls.ts';
import { type ConformingClosing, describeClosing } from './conformance-closing.ts';
import { type ConformingCorrections, describeCorrections } from './conformance-corrections.ts';
import { type ConformingLocalMethod, describeLocalMethods } from './conformance-local.ts';
import { type ConformingWalletToken, describeWalletTokens } from './conformance-wallet-tokens.ts';
import type { ConformingAnswer } from './conforming-answers.ts';
import {
  httpAnswer,
  type Script,
  type ScriptedServer,
  type ScriptedServerOptions,
  startScriptedServer,
} from './scripted-server.ts';

/** The provider's side of the suite, supplied by a connector's test. */
export type ConformingConnector = ConformingCorrections & {
  /** The connection's settings for a provider at `baseUrl`. */
  settings(baseUrl: string, timeoutMs: number): JsonObject;
  readonly secrets: Readonly<Record<string, Secret>>;
  /** A fresh attempt, with a card or a redirect. Every outcome is searched for a card's secrets. */
  attempt(): PaymentAttempt;
  /** The provider's approval of an attempt. */
  approval(attempt: PaymentAttempt): { status: number; body: JsonObject };
  /**
   * The provider's response to a request that an attempt makes before the one that may move money; undefined for the
   * latter. Absent if an attempt makes only one request. The suite responds properly to these requests and does not
   * count them.
   */
  preparation?(request: string, attempt: PaymentAttempt): { status: number; body: JsonObject } | undefined;
  /**
   * The provider's response to a request for an access token; undefined for any other request. Absent if the provider
   * has no tokens. The suite responds properly to these requests and does not count them.
   */
  accessToken?(request: string): { status: number; body: JsonObject } | undefined;
  /** Outcome of an attempt that the provider approves: `approved` by default, `awaits_payer` for a wallet. */
  readonly paid?: 'approved' | 'awaits_payer';
  /** Outcome of an attempt whose response is lost: `unknown` by default, `not_sent` if the attempt moves no money. */
  readonly lost?: 'unknown' | 'not_sent';
  /** The provider's response to a successful probe. */
  readonly probeAnswer: { status: number; body: JsonObject };
  /** Answers to the question for the account behind the credentials. */
  readonly accounts: readonly ConformingAccount[];
  /** The connector's calls other than `pay`. */
  readonly calls?: readonly ConformingCall[];
  /** Absent if the provider closes no payment that awaits its payer. */
  readonly closing?: ConformingClosing;
  readonly secondCharge: SecondCharge;
  /** A row for each local method and for each wallet whose tokens the connection takes. */
  readonly localMethods?: readonly ConformingLocalMethod[];
  readonly walletTokens?: readonly ConformingWalletToken[];
  /** The provider's responses, and the kind of outcome that each must become. */
  readonly answers: readonly ConformingAnswer[];
};

/** Deadline of a call that ends by itself: long enough for a busy machine. */
const TIMEOUT_MS = 10_000;
/** Deadline of a call that nothing else ends. */
const SHORT_TIMEOUT_MS = 500;
/** Time after its deadline within which a call may end. */
const SLACK_MS = 5_000;
const PROVIDER_ID = 'PROVIDER_UNDER_TEST';
const TLS_DIRECTORY = join(import.meta.dirname, '../support/tls');
/** Longer than a DNS label may be: the resolver refuses it without a query. */
const UNRESOLVABLE_HOST = `${'a'.repeat(64)}.invalid`;

/**
 * Rules for every connector, whatever its provider: not_sent only if it is certain that nothing was sent, unknown if it
 * may have been sent; each attempt sent at most once; every call ended by its deadline; a second charge told from the
 * first; no secret in an outcome; a probe that succeeds only after a proper response. Runs against real sockets.
 */
export function describeConformance(subject: ConformingConnector): void {
  const { paid = 'approved', lost = 'unknown' } = subject;
  describe(`the connector ${subject.connector.name} conforms`, () => {
    const suite = createSuite(subject);
    afterEach(() => suite.cleanUp());

    describe('attempts that are known not to have been sent', () => {
      it('an attempt is not_sent if the connection is refused', async () => {
        await suite.expectNotSent(`http://127.0.0.1:${await freePort()}`);
      });
      it('an attempt is not_sent if the name does not resolve', async () => {
        await suite.expectNotSent(`http://${UNRESOLVABLE_HOST}`);
      });
      it('an attempt is not_sent if the port does not speak TLS', async () => {
        const server = await suite.serve(() => {}, { onConnection: (socket) => socket.end('no TLS here') });
        await suite.expectNotSent(`https://127.0.0.1:${server.port}`);
        expect(server.requests).toEqual([]);
      });
      it('an attempt is not_sent if nothing answers the TLS handshake', async () => {
        const server = await suite.serve(() => {});
        await suite.expectNotSent(`https://127.0.0.1:${server.port}`, SHORT_TIMEOUT_MS);
        expect(server.requests).toEqual([]);
      });
      it('an attempt is not_sent if the certificate is not trusted', async () => {
        const [cert, key] = ['cert.pem', 'key.pem'].map((name) => readFileSync(join(TLS_DIRECTORY, name)));
        const tls = { cert: cert as Buffer, key: key as Buffer };
        const server = await suite.serve(() => {}, { tls });
        await suite.expectNotSent(`https://127.0.0.1:${server.port}`);
        expect(server.requests).toEqual([]);
      });
    });

    describe('attempts that may have been made', () => {
      for (const [name, script] of Object.entries(brokenAnswers(subject.approval(subject.attempt())))) {
        it(`the outcome of an attempt is ${lost} if it gets ${name}`, () =>
          suite.expectLost(script, lost, timeoutOf(name)));
      }
      it(`the outcome of an attempt is ${lost} if the provider resets its kept-alive connection`, async () => {
        let isFirst = true;
        const server = await suite.serve((socket, text) => {
          if (isFirst) socket.write(suite.approvalOf(text));
          else socket.resetAndDestroy();
          isFirst = false;
        });
        const connection = suite.connect(`http://127.0.0.1:${server.port}`);
        expect(await suite.pay(connection)).toMatchObject({ kind: paid });
        expect(await suite.pay(connection)).toMatchObject({ kind: lost });
        expect(server.requests).toHaveLength(2);
      });
    });

    describe('attempts with a response', () => {
      for (const row of subject.answers) {
        it(`the outcome of an attempt is ${row.outcome} if it gets ${row.name}`, async () => {
          const attempt = row.attempt?.() ?? subject.attempt();
          const approval = subject.approval(attempt);
          const { status = approval.status } = row;
          const answer = httpAnswer(status, JSON.stringify(row.body(attempt, approval.body)));
          const server = await suite.serve((socket) => socket.write(answer));
          const connection = suite.connect(`http://127.0.0.1:${server.port}`);
          const outcome = await suite.pay(connection, attempt);
          expect(outcome).toMatchObject({ kind: row.outcome });
          if (outcome.kind === 'approved') expectNamed(outcome);
          expect(server.requests).toHaveLength(1);
        });
      }
    });

    describeCorrections(subject, () => suite.connect('http://127.0.0.1:1').capabilities);

    describe('probes', () => {
      it('a probe finds a provider that responds', async () => {
        const { status, body } = subject.probeAnswer;
        const server = await suite.serve((socket) => socket.write(httpAnswer(status, JSON.stringify(body))));
        expect(await suite.probe(`http://127.0.0.1:${server.port}`)).toBe(true);
        expect(server.requests).toHaveLength(1);
      });
      it('a probe finds no provider if the connection is refused', async () => {
        expect(await suite.probe(`http://127.0.0.1:${await freePort()}`)).toBe(false);
      });
      for (const [name, script] of Object.entries(brokenAnswers(subject.approval(subject.attempt())))) {
        it(`a probe finds no provider if it gets ${name}`, async () => {
          const server = await suite.serve(script);
          expect(await suite.probe(`http://127.0.0.1:${server.port}`, timeoutOf(name))).toBe(false);
        });
      }
    });

    const calls = {
      ...{ serve: suite.serve, connect: suite.connect, timeoutOf, slackMs: SLACK_MS },
      capabilities: () => suite.connect('http://127.0.0.1:1').capabilities,
    };
    describeAccount(subject.accounts, subject.approval(subject.attempt()), calls);
    describeCalls(subject.calls ?? [], calls);
    describeClosing(subject.closing, calls);
    describeSecondCharge(subject.secondCharge, calls);
    describeLocalMethods(subject.localMethods ?? [], { ...calls, pay: suite.pay });
    describeWalletTokens(subject.walletTokens ?? [], { ...calls, pay: suite.pay });

    it('an attempt contains our transaction ID, and closing the connection closes its sockets', async () => {
      const server = await suite.serve((socket, text) => socket.write(suite.approvalOf(text)));
      const connection = suite.connect(`http://127.0.0.1:${server.port}`);
      const attempt = subject.attempt();
      expect(await suite.pay(connection, attempt)).toMatchObject({
        kind: paid,
        providerData: { id: PROVIDER_ID },
      });
      expect(server.requests[0]).toContain(attempt.transactionId);
      await connection.close();
      await expect.poll(() => server.openSockets()).toBe(0);
    });

    it('closing the connection waits for a call in flight', async () => {
      const server = await suite.serve((socket, text) => {
        setTimeout(() => socket.write(suite.approvalOf(text)), 100);
      });
      const connection = suite.connect(`http://127.0.0.1:${server.port}`);
      const outcome = suite.pay(connection);
      await expect.poll(() => server.requests.length).toBe(1);
      await connection.close();
      expect(await outcome).toMatchObject({ kind: paid });
    });
  });
}

function createSuite(subject: ConformingConnector) {
  const opened: { close(): Promise<void> }[] = [];
  const attempts = new Map<string, PaymentAttempt>();

  async function serve(script: Script, options?: ScriptedServerOptions): Promise<ScriptedServer> {
    const requests: string[] = [];
    const afterPreparation: Script = (socket, text) => {
      const attempt = attemptOf(text);
      const prepared = subject.accessToken?.(text) ?? (attempt && subject.preparation?.(text, attempt));
      if (prepared) {
        socket.write(httpAnswer(prepared.status, JSON.stringify(prepared.body)));
        return;
      }
      requests.push(text);
      script(socket, text);
    };
    const server = await startScriptedServer(afterPreparation, options);
    opened.push(server);
    return { ...server, requests };
  }

  function connect(baseUrl: string, timeoutMs = TIMEOUT_MS): ProviderConnection {
    const context = { providerId: PROVIDER_ID, secrets: subject.secrets };
    const connection = redactOutcomes(
      subject.connector.connect(subject.settings(baseUrl, timeoutMs), context),
    );
    opened.push(connection);
    return connection;
  }

  /** Pays, and checks that the outcome came in time and contains no secret. */
  async function pay(
    connection: ProviderConnection,
    attempt = subject.attempt(),
    timeoutMs = TIMEOUT_MS,
  ): Promise<Outcome> {
    attempts.set(attempt.transactionId, attempt);
    const startedMs = performance.now();
    const outcome = await connection.pay(attempt);
    expect(performance.now() - startedMs).toBeLessThan(timeoutMs + SLACK_MS);
    for (const secret of secretsOf(attempt, subject.secrets)) {
      // Matches a secret only on its own: identifiers and times may contain the digits of a security code.
      expect(JSON.stringify(outcome)).not.toMatch(new RegExp(`(?<![0-9a-f.])${secret}(?![0-9a-f])`));
    }
    return outcome;
  }

  async function probe(baseUrl: string, timeoutMs = TIMEOUT_MS): Promise<boolean | undefined> {
    const startedMs = performance.now();
    const isThere = await connect(baseUrl, timeoutMs).probe?.();
    expect(performance.now() - startedMs).toBeLessThan(timeoutMs + SLACK_MS);
    return isThere;
  }

  async function expectNotSent(baseUrl: string, timeoutMs = TIMEOUT_MS): Promise<void> {
    const outcome = await pay(connect(baseUrl, timeoutMs), subject.attempt(), timeoutMs);
    expect(outcome).toMatchObject({ kind: 'not_sent' });
  }

  async function expectLost(script: Script, kind: Outcome['kind'], timeoutMs: number): Promise<void> {
    const { outcome, requests } = await untilAsked(async () => {
      const server = await serve(script);
      const connection = connect(`http://127.0.0.1:${server.port}`, timeoutMs);
      return { outcome: await pay(connection, subject.attempt(), timeoutMs), requests: server.requests };
    });
    expect(outcome).toMatchObject({ kind });
    expect(requests).toHaveLength(1);
  }

  function attemptOf(request: string): PaymentAttempt | undefined {
    return [...attempts.values()].find(({ transactionId }) => request.includes(transactionId));
  }

  /** The approval of the attempt whose id a request contains. */
  function approvalOf(request: string): string {
    const attempt = attemptOf(request);
    if (!attempt) throw new Error('the request does not contain our transaction id');
    const { status, body } = subject.approval(attempt);
    return httpAnswer(status, JSON.stringify(body));
  }

  async function cleanUp(): Promise<void> {
    for (const it of opened.splice(0).reverse()) await it.close();
  }

  return { serve, connect, pay, probe, expectNotSent, expectLost, approvalOf, cleanUp };
}

/** Deadline of a call that gets the broken response with that name. */
function timeoutOf(brokenAnswer?: string): number {
  return brokenAnswer && ENDLESS_ANSWERS.has(brokenAnswer) ? SHORT_TIMEOUT_MS : TIMEOUT_MS;
}

function secretsOf(attempt: PaymentAttempt, secrets: Readonly<Record<string, Secret>>): string[] {
  const all = Object.values(secrets);
  if (attempt.method.by === 'card') {
    const { number, securityCode } = attempt.method.card;
    all.push(number, ...(securityCode ? [securityCode] : []));
  }
  return all.map((secret) => secret.reveal());
}
