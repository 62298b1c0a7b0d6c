import type { JsonObject } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import type { AccountReport } from '#src/connectors/port/account-report.ts';
import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import { freePort } from '../support/free-port.ts';
import { brokenAnswers } from './broken-answers.ts';
import { httpAnswer, type Script, type ScriptedServer } from './scripted-server.ts';

/** An answer to the question for the account, and the report that it must become. */
export type ConformingAccount = {
  readonly name: string;
  readonly status: number;
  readonly body: JsonObject;
  readonly report: AccountReport;
};

type Suite = {
  serve(script: Script): Promise<ScriptedServer>;
  connect(baseUrl: string, timeoutMs?: number): ProviderConnection;
  timeoutOf(brokenAnswer: string): number;
};

/** Rules for `readAccount`: no doubtful answer accepts or refuses credentials, and a redirect is not followed. */
export function describeAccount(
  rows: readonly ConformingAccount[],
  approval: { status: number; body: JsonObject },
  { serve, connect, timeoutOf }: Suite,
): void {
  describe('the account behind the credentials', () => {
    const toldBy = async (script: Script, timeoutMs?: number) => {
      const server = await serve(script);
      const report = await connect(`http://127.0.0.1:${server.port}`, timeoutMs).readAccount();
      return { report, requests: server.requests };
    };

    it.each(rows)('the report is $report.result if it gets $name', async ({ status, body, report }) => {
      const told = await toldBy((socket) => socket.write(httpAnswer(status, JSON.stringify(body))));
      expect(told.report).toEqual(report);
    });
    it('the report is UNREACHABLE if the connection is refused', async () => {
      const report = await connect(`http://127.0.0.1:${await freePort()}`).readAccount();
      expect(report).toMatchObject({ result: 'UNREACHABLE' });
    });
    for (const [name, script] of Object.entries(brokenAnswers(approval))) {
      it(`the report is UNREACHABLE if it gets ${name}`, async () => {
        const { report, requests } = await toldBy(script, timeoutOf(name));
        expect(report).toMatchObject({ result: 'UNREACHABLE' });
        expect(requests).toHaveLength(1);
      });
    }
  });
}
