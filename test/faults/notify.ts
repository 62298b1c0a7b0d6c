import { SIGNATURE_HEADER } from '#sandbox/signature.ts';
import type { RawNotification } from '#src/connectors/port/connector.ts';
import { NOTIFICATION_HEADERS } from '../support/fake-providers.ts';
import type { Judge, LedgerLine } from './providers/provider.ts';

const TIMEOUT_MS = 3_000;

/** Sends a notification about an entry as the provider. @returns the status of the response. */
export function notify(
  { judge }: { readonly judge: Judge },
  url: string,
  line: LedgerLine,
  { isForged = false }: { readonly isForged?: boolean } = {},
): Promise<number | undefined> {
  return deliver(url, 'judge', judge.notification(line, { isForged }));
}

/** Posts a notification to a connection's URL. @returns undefined if no response arrives in time. */
export async function deliver(
  url: string,
  connection: string,
  { header, query, body }: RawNotification,
): Promise<number | undefined> {
  const headers = [...NOTIFICATION_HEADERS, SIGNATURE_HEADER].flatMap((name): [string, string][] => {
    const value = header(name);
    return value === undefined ? [] : [[name, value]];
  });
  try {
    const response = await fetch(`${url}/v1/providers/${connection}/notifications?${query}`, {
      method: 'POST',
      headers: [...headers, ['content-type', 'application/json']],
      body: Buffer.from(body),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    await response.text();
    return response.status;
  } catch {
    return undefined;
  }
}
