import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import http2 from 'node:http2';
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { onService, server, tables } from '../support/on-service.ts';
import { ACCOUNT_ONE, headersOne } from '../support/payment-requests.ts';
import { rawExchange } from '../support/raw-exchange.ts';
import { readCsv } from '../support/read-csv.ts';

onService();

const PATH = '/v1/exports/movements.csv?month=2026-09';
const MOVEMENTS = 12_000;

beforeAll(async () => {
  await tables.query(
    `WITH p AS (
       INSERT INTO payment (id, account_id, idempotency_key, request_hash, request_shape, status, record)
       SELECT gen_random_uuid(), $1, 'key-' || n, '', '', 'SUCCEEDED', '' FROM generate_series(1, ${MOVEMENTS}) n RETURNING id)
     INSERT INTO transaction (id, payment_id, account_id, connection_id, connection_identity, status, amount_minor_units,
       currency, capture, succeeded_at)
     SELECT gen_random_uuid(), id, $1, 'a', 'a', 'SUCCEEDED', 100, 'USD', true, '2026-09-15T12:00:00Z' FROM p`,
    [ACCOUNT_ONE],
  );
  await tables.query('VACUUM (ANALYZE) payment, transaction');
});

const isOpen = new Set<{ destroy(): unknown }>();
afterEach(async () => {
  for (const one of isOpen) one.destroy();
  isOpen.clear();
});

/** Begins a download over HTTP/1.1, and reads nothing but its headers. */
async function begin(path = PATH): Promise<http.IncomingMessage> {
  const request = http.get(server.url + path, { headers: headersOne(), agent: false });
  isOpen.add(request);
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  return response;
}

/** Makes every later page of movements fail. @returns a function that mends it. */
async function breakPages(): Promise<() => Promise<unknown>> {
  await tables.query('ALTER TABLE movement_correction RENAME TO away');
  return () => tables.query('ALTER TABLE away RENAME TO movement_correction');
}

const endsOf = async () =>
  (await tables.query("SELECT detail FROM audit_log WHERE action = 'export-broke-off' ORDER BY id")).map(
    ({ detail }) => detail,
  );

describe('an export', () => {
  it('an export has every row once, however many pages it has, and the rows of one moment', async () => {
    const response = await fetch(server.url + PATH, { headers: headersOne() });
    const rows = readCsv(await response.text());
    expect(rows).toHaveLength(MOVEMENTS);
    expect(new Set(rows.map(({ movement_id: id }) => id)).size).toBe(MOVEMENTS);
  });

  it('an export that fails half-way ends HTTP/1.1 without the final chunk, and is recorded as broken off', async () => {
    const response = await begin();
    let text = '';
    response.on('data', (chunk) => {
      text += chunk;
    });
    const mend = await breakPages();
    const [error] = await once(response, 'error');
    await mend();
    expect(error).toMatchObject({ code: 'ECONNRESET' });
    expect(response.complete).toBe(false);
    expect(text.length).toBeGreaterThan(1_000);
    await vi.waitFor(async () => expect((await endsOf()).at(-1)).toMatch(/^it failed after \d+ rows$/));
  });

  it('an export that fails half-way resets the stream of HTTP/2, and leaves the others alone', async () => {
    const session = http2.connect(server.url);
    isOpen.add(session);
    const stream = session.request({ ':path': PATH, ...headersOne() });
    stream.on('error', () => {}).resume();
    await once(stream, 'response');
    const mend = await breakPages();
    await new Promise((resolve) => stream.once('close', resolve));
    await mend();
    expect(stream.rstCode).toBe(http2.constants.NGHTTP2_INTERNAL_ERROR);
    const other = session.request({ ':path': '/healthz' });
    const [headers] = await once(other, 'response');
    expect(headers[':status']).toBe(200);
  });

  it('an export fails with an error of its own if not even its first page can be read', async () => {
    const mend = await breakPages();
    const response = await fetch(server.url + PATH, { headers: headersOne() });
    await mend();
    expect([response.status, response.headers.get('content-type')]).toEqual([
      500,
      'application/problem+json',
    ]);
  });

  it('an export ends with its client, and reads no more', async () => {
    const response = await begin();
    await once(response, 'readable');
    response.destroy();
    await vi.waitFor(async () =>
      expect((await endsOf()).at(-1)).toMatch(/^the client disconnected after \d+ rows$/),
    );
    const rows = Number(/\d+/.exec(String((await endsOf()).at(-1)))?.[0]);
    expect(rows).toBeLessThan(MOVEMENTS);
  });

  it('two exports of an account are written at once, and a third gets 429 until one has ended', async () => {
    const first = await begin();
    await begin();
    const third = await fetch(server.url + PATH, { headers: headersOne() });
    expect([third.status, third.headers.get('retry-after')]).toEqual([429, '30']);
    expect(((await third.json()) as { code: string }).code).toBe('RATE_LIMITED');
    // All accounts together are another group.
    const all = await fetch(server.url + PATH, { headers: { 'operator-key': 'op_sandbox' } });
    expect(all.status).toBe(200);
    await all.body?.cancel();
    first.destroy();
    await vi.waitFor(async () => {
      const again = await fetch(server.url + PATH, { headers: headersOne() });
      await again.body?.cancel();
      expect(again.status).toBe(200);
    });
  });

  it('HTTP/1.0, which cannot show that a file broke off, is refused', async () => {
    const headers = Object.entries(headersOne(randomUUID())).map(([name, value]) => `${name}: ${value}\r\n`);
    const { received } = await rawExchange(
      server.url,
      Buffer.from(`GET ${PATH} HTTP/1.0\r\n${headers.join('')}\r\n`),
    );
    expect(received).toMatch(/^HTTP\/1\.1 400 /);
    expect(received).toContain('HTTP/1.0 cannot show');
  });
});
