import { WebhookSignatureValidator } from 'mercadopago';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { verifyNotification } from '#src/connectors/mercado-pago/notifications.ts';
import { Secret } from '#src/secret.ts';
import { lookUp } from '../under-test.ts';
import { FAKE_WEBHOOK_SECRET, webhookOf } from './fake-mercado-pago.ts';
import { type MercadoPagoUnderTest, openMercadoPago, SECRETS, sentAway } from './mercado-pago-under-test.ts';

const NEXT_SECRET = 'the-secret-signature-after-the-renewal';
const secrets = [new Secret(FAKE_WEBHOOK_SECRET)];
const DAY_MS = 86_400_000;

let under: MercadoPagoUnderTest;
beforeEach(async () => {
  under = await openMercadoPago({
    ...SECRETS,
    webhook_secret_next: new Secret(NEXT_SECRET),
  } as typeof SECRETS);
});
afterEach(() => under.close());

const read = (notification: ReturnType<typeof webhookOf>) =>
  under.connection.readNotification?.(notification, Date.now());

describe('webhooks from Mercado Pago', () => {
  it('a webhook from Mercado Pago names a payment, and the provider reports its transaction', async () => {
    const { attempt } = await sentAway(under);
    const { id } = under.fake.pay(under.fake.preference());
    for (const secret of [FAKE_WEBHOOK_SECRET, NEXT_SECRET]) {
      expect(await read(webhookOf(String(id), { secret }))).toEqual({
        kind: 'about',
        deduplicationKey: expect.stringMatching(/^[0-9a-f]{64}$/),
        subjects: [{ transactionId: attempt.transactionId, providerPaymentId: String(id) }],
      });
    }
  });

  it.each([
    ['in_mediation', 'pending', 'opened', 'mediation'],
    ['charged_back', 'in_process', 'opened', 'chargeback'],
    ['charged_back', 'settled', 'lost', 'chargeback', 1],
    ['charged_back', 'reimbursed', 'won', 'chargeback', 2],
  ] as [string, string, string, string, number?][])(
    'a webhook from Mercado Pago reports a dispute: %s with the detail %s means %s, for a %s',
    async (status, detail, stage, kind, moves) => {
      const { attempt } = await sentAway(under);
      const { id } = under.fake.pay(under.fake.preference(), status, detail);
      const named = { transactionId: attempt.transactionId, providerPaymentId: String(id) };
      const disputed = { ...named, dispute: { stage, reference: `${kind}/${id}`, ...(moves && { moves }) } };
      const reading = await read(webhookOf(String(id)));
      // A won dispute may also end a mediation, which the look-up reports.
      expect(reading).toMatchObject({ subjects: stage === 'won' ? [disputed, named] : [disputed] });
    },
  );

  it.each([
    ['approved', 'accredited', 'won'],
    ['charged_back', 'reimbursed', 'won'],
    ['refunded', 'by_admin', 'lost'],
    ['in_mediation', 'pending', undefined],
    ['charged_back', 'in_process', undefined],
    ['charged_back', 'settled', undefined],
  ])(
    'a webhook from Mercado Pago prompts a look-up that reports ended disputes: %s, %s',
    async (status, detail, stage) => {
      const { attempt, reference } = await sentAway(under);
      const { id } = under.fake.pay(under.fake.preference(), status, detail);
      const ended = ['mediation', 'chargeback'].map((kind) => ({ stage, reference: `${kind}/${id}` }));
      const hint = { providerPaymentId: String(id) };
      const told = { kind: 'approved', endedDisputes: stage ? ended : [] };
      expect(await lookUp(under, attempt, reference, { hint })).toMatchObject(told);
      // A search may show an earlier state: only the payment read by its ID counts.
      const stale = {
        ...under.fake.payments.get(String(id)),
        status: 'approved',
        status_detail: 'accredited',
      };
      under.fake.answerOnce(/search$/, 200, { paging: { total: 1, limit: 50, offset: 0 }, results: [stale] });
      expect(await lookUp(under, attempt, reference, { hint })).toMatchObject(told);
      // Without a hint, only a payment that a search shows as refunded is read.
      const without = await lookUp(under, attempt, reference);
      if (status === 'refunded') expect(without).toMatchObject(told);
      else expect(without).not.toHaveProperty('endedDisputes');
      under.fake.lose(/^GET .v1.payments.\d+$/, 'before');
      expect(await lookUp(under, attempt, reference, { hint })).toMatchObject({ kind: 'unknown' });
    },
  );

  it('a webhook from Mercado Pago is ignored if its payment is not ours', async () => {
    await sentAway(under);
    const other = under.fake.pay(under.fake.preference(), 'approved', 'accredited', { collector_id: 1 });
    const theirs = under.fake.pay(under.fake.preference(), 'approved', 'accredited', {
      external_reference: 'order 5',
    });
    for (const id of ['404404404', String(other.id), String(theirs.id)]) {
      expect(await read(webhookOf(id))).toEqual({ kind: 'ignored' });
    }
  });

  it('a Mercado Pago webhook is refused while the provider cannot be reached, so that it is sent again', async () => {
    await sentAway(under);
    const { id } = under.fake.pay(under.fake.preference());
    under.fake.lose(/^GET .v1.payments/, 'before');
    expect(await read(webhookOf(String(id)))).toMatchObject({ kind: 'send_again' });
    expect(await read(webhookOf(String(id)))).toMatchObject({ kind: 'about' });
  });

  it('a forged Mercado Pago webhook is detected without a request to the provider', async () => {
    const genuine = webhookOf('123');
    const forged = [
      webhookOf('123', { secret: 'another secret altogether' }),
      { ...genuine, query: 'data.id=124&type=payment' },
      { ...genuine, query: 'type=payment' },
      { ...genuine, header: (name: string) => (name === 'x-request-id' ? 'other' : genuine.header(name)) },
      { ...genuine, header: () => undefined },
      { ...genuine, header: (name: string) => genuine.header(name)?.replace('v1=', 'v2=') },
      { ...genuine, header: (name: string) => genuine.header(name)?.replace(/v1=.*/, 'v1=') },
      webhookOf('123', { ts: String(Date.now() - DAY_MS - 60_000) }),
      webhookOf('123', { ts: String(Date.now() + 600_000) }),
    ];
    for (const notification of forged) expect(await read(notification)).toMatchObject({ kind: 'forged' });
    expect(under.fake.requests).toEqual([]);
  });

  it('a webhook from Mercado Pago about anything other than a payment or a chargeback is ignored', async () => {
    for (const query of [
      'data.id=123&type=topic_merchant_order_wh',
      'data.id=123',
      'data.id=123&topic=payment',
      'data.id=123&type=constructor',
    ]) {
      expect(await read(webhookOf('123', { query }))).toEqual({ kind: 'ignored' });
    }
    expect(under.fake.requests).toEqual([]);
  });
});

describe('the signature of a webhook', () => {
  const nowMs = 1_704_908_010_000;
  const verify = (notification: ReturnType<typeof webhookOf>) =>
    verifyNotification(notification, secrets, nowMs);

  it('the signature of a webhook contains a time in seconds or in milliseconds', () => {
    for (const ts of ['1704908010', '1704908010000']) {
      expect(verify(webhookOf('123', { ts }))).toMatchObject({
        kind: 'genuine',
        about: 'payment',
        id: '123',
      });
    }
    for (const ts of ['1704800000', '1704800000000']) {
      expect(verify(webhookOf('123', { ts }))).toMatchObject({ kind: 'forged' });
    }
  });

  it('the signature of a webhook may have spaces around its parts', () => {
    const { header, ...signed } = webhookOf('123', { ts: '1704908010' });
    const spaced = (name: string) =>
      name === 'x-signature' ? header(name)?.replace(',', ' , ').replaceAll('=', ' = ') : header(name);
    expect(verify({ ...signed, header: spaced })).toMatchObject({ kind: 'genuine' });
  });

  it('the signature of a webhook omits a missing part', () => {
    const ts = '1704908010';
    expect(verify(webhookOf('123', { ts, requestId: '' }))).toMatchObject({ kind: 'genuine' });
    expect(verify(webhookOf('', { ts, query: 'type=payment' }))).toEqual({ kind: 'ignored' });
  });

  it('the signature of a webhook may cover the id in lower case, however the id is written', () => {
    const signed = webhookOf('abc', { ts: '1704908010' });
    expect(verify({ ...signed, query: 'data.id=ABC&type=payment' })).toEqual({ kind: 'ignored' });
    expect(verify({ ...signed, query: 'data.id=ABD&type=payment' })).toMatchObject({ kind: 'forged' });
  });

  it('deliveries of one notification have the same key, and different notifications have different keys', () => {
    const ts = '1704908010';
    const keyOf = (requestId: string) => verify(webhookOf('123', { ts, requestId }));
    expect(keyOf('a')).toEqual(keyOf('a'));
    expect(keyOf('a')).not.toEqual(keyOf('b'));
  });

  it("the signature of a webhook is accepted if and only if the provider's own SDK accepts it", () => {
    for (const [id, secret, isGenuine] of [
      ['123', FAKE_WEBHOOK_SECRET, true],
      ['124', FAKE_WEBHOOK_SECRET, false],
      ['123', 'another secret altogether', false],
    ] as const) {
      const { header } = webhookOf('123', { ts: '1704908010', secret });
      const options = {
        xSignature: header('x-signature'),
        xRequestId: header('x-request-id'),
        dataId: id,
        secret: FAKE_WEBHOOK_SECRET,
      };
      const theirs = () => WebhookSignatureValidator.validate(options);
      if (isGenuine) theirs();
      else expect(theirs).toThrow();
      const ours = verify({ header, query: `data.id=${id}&type=payment`, body: Buffer.alloc(0) });
      expect(ours.kind).toBe(isGenuine ? 'genuine' : 'forged');
    }
  });
});
