import { randomUUID } from 'node:crypto';
import { Agent } from 'undici';
import { currentAnswer } from './entries.ts';
import type { LedgerEntry } from './ledger-entry.ts';
import { SIGNATURE_HEADER, signatureOf } from './signature.ts';
import type { Timers } from './timers.ts';

/** Sender of notifications about new and changed entries. */
export type Notifications = {
  /**
   * Sends the notification of a new or changed entry. Resolves at once, unless the notification must be delivered
   * before the response.
   */
  announce(entry: LedgerEntry): Promise<void>;
  close(): Promise<void>;
};

/** Options for sending notifications. */
export type NotificationOptions = {
  /** URL for payments that name none; if undefined, they send nothing. */
  readonly url: string | undefined;
  /** Secrets with which each notification is signed; if there are none, nothing is sent. */
  readonly secrets: readonly string[];
};

type Notification = { readonly url: string; readonly body: string; readonly isForged: boolean };

/** Pauses before the retries of a notification that got no 2xx. */
const PAUSES_MS = [1_000, 5_000, 30_000];
const TIMEOUT_MS = 5_000;
/** Maximum time that a notification waits for the next one to overtake it. */
const HELD_MS = 2_000;
const MAX_CONNECTIONS = 16;

/** Creates the sender. Sending delays no response, and a notification is dropped after its last retry. */
export function createNotifications(options: NotificationOptions, timers: Timers): Notifications {
  const agent = new Agent({
    connections: MAX_CONNECTIONS,
    connect: { timeout: TIMEOUT_MS },
    headersTimeout: TIMEOUT_MS,
    bodyTimeout: TIMEOUT_MS,
  });
  const heldBack = new Map<string, Notification>();

  async function announce(entry: LedgerEntry): Promise<void> {
    const { notify: order } = entry.details;
    const url = entry.details.notificationUrl ?? options.url;
    if (url === undefined || options.secrets.length === 0 || order?.isNever) return;
    const notification = { url, body: bodyOf(entry), isForged: order?.isForged === true };
    const about = entry.parentId ?? entry.id;
    if (order?.isFirst) {
      await send(notification);
      return;
    }
    if (order?.isOutOfOrder && !heldBack.has(about)) {
      heldBack.set(about, notification);
      timers.after(HELD_MS, async () => release(about));
      return;
    }
    const delayMs = order?.lateMs ?? 0;
    for (let copy = 0; copy < (order?.isTwice ? 2 : 1); copy++) sendLater(notification, delayMs, 0);
    if (heldBack.has(about)) timers.after(delayMs + 1, async () => release(about));
  }

  function release(about: string): void {
    const notification = heldBack.get(about);
    heldBack.delete(about);
    if (notification) sendLater(notification, 0, 0);
  }

  function sendLater(notification: Notification, delayMs: number, attempt: number): void {
    timers.after(delayMs, async () => {
      const isTaken = await send(notification);
      const pauseMs = PAUSES_MS[attempt];
      if (!isTaken && pauseMs !== undefined) sendLater(notification, pauseMs, attempt + 1);
    });
  }

  /** Sends once. @returns true if the receiver accepted it with a 2xx. */
  async function send({ url, body, isForged }: Notification): Promise<boolean> {
    const secrets = isForged ? [randomUUID()] : options.secrets;
    try {
      const { origin, pathname, search } = new URL(url);
      const response = await agent.request({
        method: 'POST',
        origin,
        path: pathname + search,
        headers: {
          'content-type': 'application/json',
          [SIGNATURE_HEADER]: signatureOf(body, secrets, Date.now()),
        },
        body,
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      await response.body.dump();
      return response.statusCode >= 200 && response.statusCode < 300;
    } catch {
      return false;
    }
  }

  return { announce, close: () => agent.destroy() };
}

function bodyOf(entry: LedgerEntry): string {
  const event = {
    id: `ev_${randomUUID()}`,
    type: `${entry.kind}.${entry.status}`,
    created_at: new Date().toISOString(),
  };
  return `${JSON.stringify(event).slice(0, -1)},"data":${currentAnswer(entry)}}`;
}
