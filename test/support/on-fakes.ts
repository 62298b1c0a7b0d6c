import { afterAll, beforeAll, expect } from 'vitest';
import type { RawNotification } from '#src/connectors/port/connector.ts';
import { merchantOne } from './dashboard.ts';
import { AT_FAKES, startFakeProviders, tell } from './fake-providers.ts';
import { onService, server, tables } from './on-service.ts';
import { untilNewsIsSettled } from './settled-news.ts';
import { wantEveryEvent } from './tables.ts';

/** The fakes of the four providers. */
export let fakes: Awaited<ReturnType<typeof startFakeProviders>>;

/** Starts the service with the fakes of all providers for a file's tests, with an event for every change. */
export function onFakes(): void {
  beforeAll(async () => {
    fakes = await startFakeProviders();
  });
  onService(() => ({
    catalogue: fakes.catalogue(),
    config: AT_FAKES,
  }));
  beforeAll(() => wantEveryEvent(tables));
  afterAll(() => fakes?.close());
}

/** A record, as a merchant's code sees it. */
// biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary fields.
export type MerchantRecord = any;

/** Calls the API of payments as a merchant. */
export const call = (path: string, body?: object): Promise<MerchantRecord> =>
  merchantOne(server).call(`/v1/payments${path}`, body);

/** Delivers a notification and waits until it is settled. */
export async function deliver(connection: string, notification: RawNotification): Promise<void> {
  expect(await tell(server.url, connection, notification)).toBe(200);
  await untilNewsIsSettled(tables);
}

/** Counts the alarms that providers' news has raised. */
export async function alarms(): Promise<number> {
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  const counts = metrics.matchAll(/^provider_alarms_total\{[^}]*\} (\d+)/gm);
  return [...counts].reduce((sum, [, n]) => sum + Number(n), 0);
}
