import type { JsonObject } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import type { PaymentAttempt } from '#src/connectors/port/attempt.ts';
import type { LookUp } from '#src/connectors/port/connector.ts';
import type { Outcome, ReportedCard } from '#src/connectors/port/outcome.ts';
import { freePort } from '../support/free-port.ts';
import { lookUpOf } from './attempts.ts';
import type { LocalSuite } from './conformance-local.ts';
import { httpAnswer, type Script } from './scripted-server.ts';

type Answer = { readonly status: number; readonly body: JsonObject };

/** The tokens of a wallet that a connector charges, with the provider's responses. */
export type ConformingWalletToken = {
  /** payment_method.type. */
  readonly type: string;
  /** A fresh attempt with a token. Every outcome is searched for the token. */
  attempt(): PaymentAttempt;
  approval(attempt: PaymentAttempt): Answer;
  /** The card behind the wallet, as the approval reports it. */
  readonly card: ReportedCard;
  readonly decline: (attempt: PaymentAttempt) => Answer;
  /** The response to the charge, if the provider puts whatever it was sent into its error. */
  readonly refusal: (token: string) => Answer;
  /** Absent at a provider without a look-up. */
  readonly lookUp?: {
    readonly over?: Partial<LookUp>;
    /** The response to a look-up of an approved charge. */
    answer(request: string, attempt: PaymentAttempt): Answer;
  };
};

/**
 * Checks the tokens of wallets: sent once, never repeated, found later without the token, and in no outcome.
 */
export function describeWalletTokens(rows: readonly ConformingWalletToken[], suite: LocalSuite): void {
  it('every wallet whose tokens the connection takes has its row', () => {
    const types = rows.map(({ type }) => type);
    expect(types.sort()).toEqual([...suite.capabilities().walletTokens].sort());
  });
  for (const row of rows) describe(`tokens of ${row.type}`, () => describeToken(row, suite));
}

function describeToken(row: ConformingWalletToken, suite: LocalSuite): void {
  const payWith = async (script: Script, attempt = row.attempt(), timeoutMs?: number) => {
    const server = await suite.serve(script);
    const outcome = await suite.pay(suite.connect(`http://127.0.0.1:${server.port}`, timeoutMs), attempt);
    expectWithoutToken(outcome, attempt);
    return { outcome, requests: server.requests };
  };
  const send =
    ({ status, body }: Answer): Script =>
    (socket) =>
      void socket.write(httpAnswer(status, JSON.stringify(body)));

  it('an approval reports the card behind the wallet', async () => {
    const attempt = row.attempt();
    const { outcome, requests } = await payWith(send(row.approval(attempt)), attempt);
    expect(outcome).toMatchObject({ kind: 'approved', card: row.card });
    expect(requests).toEqual([expect.stringContaining(attempt.transactionId)]);
  });

  it('a decline is one, and a refusal that repeats the token shows nothing of it', async () => {
    const attempt = row.attempt();
    const { outcome } = await payWith(send(row.decline(attempt)), attempt);
    expect(outcome).toMatchObject({ kind: 'declined' });
    await payWith(send(row.refusal(tokenOf(attempt))), attempt);
  });

  it('a charge that is lost is unknown, and sent once', async () => {
    for (const lose of [
      (socket) => void socket.resetAndDestroy(),
      (socket) => void socket.write(httpAnswer(500, '{}')),
    ] satisfies Script[]) {
      const { outcome, requests } = await payWith(lose);
      expect([outcome.kind, requests.length]).toEqual(['unknown', 1]);
    }
    const refused = `http://127.0.0.1:${await freePort()}`;
    expect(await suite.pay(suite.connect(refused), row.attempt())).toMatchObject({ kind: 'not_sent' });
  });

  it.runIf(row.lookUp)('a charge is found later, with its card and without the token', async () => {
    const attempt = row.attempt();
    const server = await suite.serve((socket, text) => {
      if (row.lookUp) send(row.lookUp.answer(text, attempt))(socket, text);
    });
    const connection = suite.connect(`http://127.0.0.1:${server.port}`);
    const outcome = await connection.lookUp?.(lookUpOf(attempt, row.lookUp?.over));
    expect(outcome).toMatchObject({ kind: 'approved', card: row.card });
  });
}

function tokenOf({ method }: PaymentAttempt): string {
  if (method.by !== 'wallet_token') throw new Error('the attempt has no token');
  return method.token.reveal();
}

/** Searches an outcome for every piece of a token's text values. */
function expectWithoutToken(outcome: Outcome, attempt: PaymentAttempt): void {
  const text = JSON.stringify(outcome, (_name, value) => (typeof value === 'bigint' ? String(value) : value));
  for (const piece of tokenOf(attempt).match(/[A-Za-z0-9+/=_-]{20,}/g) ?? [])
    expect(text).not.toContain(piece);
}
