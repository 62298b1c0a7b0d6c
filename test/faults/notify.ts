import { randomUUID } from 'node:crypto';
import { SIGNATURE_HEADER, signatureOf } from '#src/sandbox/signature.ts';
import { exchange } from './orders.ts';
import { type LedgerLine, NOTIFICATION_SECRET } from './world.ts';

/** Sends a notification about an entry in the provider's name. @returns the status that it is answered with. */
export async function notify(
  url: string,
  line: LedgerLine,
  { isForged = false }: { readonly isForged?: boolean } = {},
): Promise<number | undefined> {
  const event = {
    id: `ev_${randomUUID()}`,
    type: `${line.kind}.${line.status}`,
    created_at: new Date().toISOString(),
    data: { object: line.kind, ...line },
  };
  const body = JSON.stringify(event);
  const secret = isForged ? randomUUID() : NOTIFICATION_SECRET;
  const { status } = await exchange(`${url}/v1/providers/judge/notifications`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      [SIGNATURE_HEADER]: signatureOf(body, [secret], Date.now()),
    },
    body,
  });
  return status;
}
