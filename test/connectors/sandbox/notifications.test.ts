import type { IncomingHttpHeaders } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { signatureOf } from '#sandbox/signature.ts';
import type { ProviderConnection, RawNotification } from '#src/connectors/port/connector.ts';
import { payersPage } from '#src/connectors/port/outcome.ts';
import { sandboxConnector } from '#src/connectors/sandbox/connector.ts';
import { Secret } from '#src/secret.ts';
import { API_KEY, type ProviderUnderTest, startProvider } from '../../sandbox/provider-under-test.ts';
import { type Site, startSite } from '../../support/site.ts';
import { cardAttempt, lookUpOf, redirectAttempt } from '../attempts.ts';

const SECRET = 'a notification secret';
const PREVIOUS = 'the previous notification secret';

let provider: ProviderUnderTest;
let connection: ProviderConnection;
/** The notifications that the provider sent to our URL. */
const notified: { headers: IncomingHttpHeaders; body: string }[] = [];
let ourselves: Site;
let notificationUrl: string;

beforeAll(async () => {
  ourselves = await startSite(async (request, response) => {
    notified.push({ headers: request.headers, body: await text(request) });
    response.end();
  });
  notificationUrl = `${ourselves.url}/notifications`;
  provider = await startProvider({ publicUrl: (origin) => origin, notificationSecrets: [PREVIOUS] });
  connection = sandboxConnector.connect(
    { base_url: provider.origin, timeout_ms: 20_000 },
    {
      providerId: 'SANDBOX_ONE',
      secrets: {
        api_key: new Secret(API_KEY),
        notification_secret: new Secret(SECRET),
        previous_notification_secret: new Secret(PREVIOUS),
      },
    },
  );
});
afterAll(async () => {
  await connection?.close();
  await provider?.close();
  ourselves?.close();
});

describe('notifications from the sandbox provider', () => {
  const raw = ({ headers, body }: (typeof notified)[number]): RawNotification => ({
    header: (name) => headers[name]?.toString(),
    query: '',
    body: Buffer.from(body),
  });
  const reading = (notification: RawNotification, nowMs = Date.now()) =>
    connection.readNotification?.(notification, nowMs);

  it('a notification from the sandbox names its transaction, even if it is signed with the previous secret', async () => {
    const attempt = cardAttempt(undefined, { notificationUrl, description: 'about' });
    const outcome = await connection.pay(attempt);
    const reference = outcome.kind === 'approved' ? outcome.reference : '';
    await expect.poll(() => notified.filter(({ body }) => body.includes('"about"'))).toHaveLength(1);
    const [notification] = notified.filter(({ body }) => body.includes('"about"'));
    if (!notification) throw new Error('nothing came');
    const about = {
      kind: 'about',
      deduplicationKey: expect.stringMatching(/^ev_/),
      subjects: [{ transactionId: attempt.transactionId, providerPaymentId: reference }],
    };
    expect(await reading(raw(notification))).toEqual(about);
    const fresh = signatureOf(notification.body, [SECRET], Date.now());
    expect(await reading(raw({ ...notification, headers: { 'sandbox-signature': fresh } }))).toEqual(about);
    const tampered = { ...notification, body: notification.body.replace('approved', 'declined') };
    expect(await reading(raw(tampered))).toMatchObject({ kind: 'forged' });
    for (const minutes of [-6, 6]) {
      expect(await reading(raw(notification), Date.now() + minutes * 60_000)).toMatchObject({
        kind: 'forged',
      });
    }
  });

  it('a notification from the sandbox about a completion names the order', async () => {
    const method = { by: 'payer', type: 'WALLET_D', show: 'page' } as const;
    const attempt = redirectAttempt({ notificationUrl, method } as object);
    const outcome = await connection.pay(attempt);
    const url = payersPage(outcome);
    await fetch(`${url}/pay`, { method: 'POST', redirect: 'manual' });
    await connection.complete?.(lookUpOf(attempt));
    await expect.poll(() => notified.some(({ body }) => body.includes('"completion.succeeded"'))).toBe(true);
    const notification = notified.find(({ body }) => body.includes('"completion.succeeded"'));
    expect(notification && (await reading(raw(notification)))).toMatchObject({
      kind: 'about',
      subjects: [{ providerPaymentId: url.split('/').at(-1) }],
    });
  });

  it.each([
    ['no signature', undefined],
    ['an empty signature', ''],
    ['a signature without a time', `v1=${'0'.repeat(64)}`],
    ['a short signature', 't=1767225600,v1=00'],
    ['a wrong signature', `t=1767225600,v1=${'0'.repeat(64)}`],
    ['a signature with another secret', signatureOf('{}', ['another'], Date.now())],
  ])('a notification from the sandbox is treated as forged if it has %s', async (_name, signature) => {
    const headers = { 'sandbox-signature': signature };
    expect(await reading(raw({ headers, body: '{}' }))).toMatchObject({ kind: 'forged' });
  });

  it.each([
    '',
    '[]',
    '{}',
    '{"id":"ev_1"}',
    '\u0000',
    '{"id":"ev_00000000-0000-4000-8000-000000000000","data":{}}',
    '{"id":"ev_00000000-0000-4000-8000-000000000000","data":{"object":"completion"}}',
    '{"id":"1","data":{"object":"charge","id":"ch_00000000-0000-4000-8000-000000000000"}}',
  ])('a genuine but irrelevant notification from the sandbox is ignored: %s', async (body) => {
    const headers = { 'sandbox-signature': signatureOf(body, [SECRET], Date.now()) };
    expect(await reading(raw({ headers, body }))).toEqual({ kind: 'ignored' });
  });

  it('the sandbox connector reads notifications only if it has a secret of at least 16 characters', () => {
    const connect = (secrets: Record<string, Secret>) =>
      sandboxConnector.connect(
        { base_url: provider.origin },
        { providerId: 'SANDBOX_ONE', secrets: { api_key: new Secret(API_KEY), ...secrets } },
      );
    expect(connect({}).readNotification).toBeUndefined();
    expect(() => connect({ notification_secret: new Secret('short') })).toThrow(/16 characters/);
  });
});
