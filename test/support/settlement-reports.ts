import { expect, vi } from 'vitest';
import { csv } from '../connectors/settlement/read-lines.ts';
import type { Operator } from './dashboard.ts';
import type { TestServer } from './server.ts';

const COLUMNS = [
  ...['movement', 'type', 'created_at', 'payment', 'operation', 'transaction', 'amount', 'currency'],
  ...['gross', 'fee', 'net', 'settlement_currency', 'exchange_rate', 'payout'],
];

let lines = 0;

/** Returns a line of the sandbox provider's report, which settles a transaction. @param more other cells. */
export function reportLine(
  transaction: string,
  more: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const movement = `mv_${++lines}`;
  return {
    ...{ movement, type: 'payment', created_at: '2026-09-30T10:00:00Z', payment: `ch_${movement}` },
    ...{ operation: `ch_${movement}`, transaction, amount: '10.00', currency: 'USD', gross: '10.00' },
    ...{ fee: '-0.59', net: '9.41', settlement_currency: 'USD', payout: 'po_1', ...more },
  };
}

/** Returns the line of a payout. @param net what left the account at the provider, such as -9.50. */
export function payoutLine(net: string, more: Readonly<Record<string, string>> = {}): Record<string, string> {
  return reportLine('', {
    ...{
      type: 'payout',
      created_at: '2026-10-02T08:00:00Z',
      amount: net,
      gross: net,
      fee: '0.00',
      net,
      ...more,
    },
  });
}

/** Writes a report of the sandbox provider. */
export function sandboxReport(...rows: readonly Readonly<Record<string, string>>[]): string {
  return csv(COLUMNS, rows);
}

/** Uploads a report on the dashboard, and waits until its lines are matched. @param fields other fields of the form. */
export async function uploadReport(...given: Parameters<typeof sendReport>): Promise<Response> {
  const response = await sendReport(...given);
  const [, { get }] = given;
  await vi.waitFor(async () => expect(await pageAfter(response, get)).not.toContain('matching: '), {
    timeout: 20_000,
  });
  return response;
}

/** Returns the page to which a form redirects, as a browser without scripts shows it; '' without a redirect. */
export async function pageAfter(response: Response, get: Operator['get']): Promise<string> {
  const location = response.headers.get('location') ?? '';
  return location === '' ? '' : (await get(location.replace('/dashboard', ''))).text();
}

/** Uploads a report on the dashboard. @param fields other fields of the form. */
export async function sendReport(
  server: Pick<TestServer, 'url'>,
  { cookie, get }: Operator,
  report: string | Uint8Array<ArrayBuffer>,
  { name = 'september.csv', headers = {}, ...fields }: Record<string, unknown> = {},
): Promise<Response> {
  const [, token = ''] = /name="form_token" value="([^"]+)"/.exec(await (await get('/route')).text()) ?? [];
  const form = new FormData();
  const given = { form_token: token, connection: 'sandbox-one', ...(fields as Record<string, string>) };
  for (const [field, value] of Object.entries(given)) form.set(field, value);
  form.set('report', new Blob([report]), name as string);
  return fetch(`${server.url}/dashboard/settlement/import`, {
    method: 'POST',
    redirect: 'manual',
    headers: { 'sec-fetch-site': 'same-origin', cookie, ...(headers as Record<string, string>) },
    body: form,
  });
}
