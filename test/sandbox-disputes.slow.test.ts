import { describe, expect, it, vi } from 'vitest';
import { onService, server, tables } from './support/on-service.ts';
import { cardPayment, headersOne, headersTwo, withField } from './support/payment-requests.ts';
import { wantEveryEvent } from './support/tables.ts';

onService();

// biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary fields of the response.
type Got = { readonly status: number; readonly link: string; readonly body: any };

async function get(path: string, headers = headersOne()): Promise<Got> {
  const response = await fetch(server.url + path, { headers });
  const text = await response.text();
  return { status: response.status, link: response.headers.get('link') ?? '', body: JSON.parse(text) };
}

async function pay(description: string): Promise<string> {
  const response = await fetch(`${server.url}/v1/payments`, {
    method: 'POST',
    headers: { ...headersOne(), 'content-type': 'application/json' },
    body: JSON.stringify(withField(cardPayment('4111111111111111'), 'description', description)),
  });
  return ((await response.json()) as { id: string }).id;
}

/** Waits until the only dispute of a payment has a status. */
async function disputed(paymentId: string, status: string) {
  return vi.waitFor(
    async () => {
      const { body } = await get(`/v1/disputes?payment_id=${paymentId}`);
      expect(body.map((one: { status: string }) => one.status)).toEqual([status]);
      return body[0];
    },
    { timeout: 20_000, interval: 100 },
  );
}

const corrections = async (id: string) =>
  (
    await tables.query(
      'SELECT kind, amount_minor_units AS n FROM movement_correction WHERE transaction_id = $1 ORDER BY number',
      [id],
    )
  ).map(({ kind, n }) => `${kind} ${n}`);

const statusOf = async (paymentId: string) => (await get(`/v1/payments/${paymentId}`)).body.status;

describe('a dispute that the sandbox makes on request', () => {
  it.concurrent('a chargeback needs a response until a date, and takes the money', async () => {
    const payment = await pay('sandbox:dispute_after:0');
    const dispute = await disputed(payment, 'NEEDS_RESPONSE');
    expect(dispute).toMatchObject({
      ...{ payment_id: payment, stage: 'CHARGEBACK', reason: 'FRAUDULENT', network_code: '10.4' },
      ...{ provider_reason: 'fraudulent', closed_at: null, fee: { value: 15 } },
    });
    const { body: shown } = await get(`/v1/payments/${payment}`);
    expect(shown).toMatchObject({
      status: 'IN_DISPUTE',
      transactions: { type: 'CHARGEBACK', id: dispute.id },
    });
    expect(dispute.amount).toEqual({ currency: shown.amount.currency, value: shown.amount.value });
    expect(Date.parse(dispute.respond_by)).toBeGreaterThan(Date.now());
    expect(await corrections(dispute.id)).toEqual([expect.stringMatching(/^DISPUTE_WITHDRAWN -\d+$/)]);
    const page = await fetch(dispute.link);
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('needs_response')]);
    expect((await get(`/v1/disputes/${dispute.id}`)).body).toEqual(dispute);
    expect((await get(`/v1/disputes/${dispute.id}`, headersTwo())).body.code).toBe('DISPUTE_NOT_FOUND');
  });

  it.concurrent.each([
    ['won', 'WON', 'SUCCEEDED', ['DISPUTE_WITHDRAWN', 'DISPUTE_REINSTATED']],
    ['lost', 'LOST', 'CHARGEBACK', ['DISPUTE_WITHDRAWN']],
    ['accepted', 'ACCEPTED', 'CHARGEBACK', ['DISPUTE_WITHDRAWN']],
    ['expired', 'EXPIRED', 'CHARGEBACK', ['DISPUTE_WITHDRAWN']],
    ['inquiry_closed', 'CLOSED', 'SUCCEEDED', []],
    ['lost_again', 'LOST', 'CHARGEBACK', ['DISPUTE_WITHDRAWN', 'DISPUTE_REINSTATED', 'DISPUTE_WITHDRAWN']],
  ])('the ending %s leaves the dispute %s and the payment %s', async (ending, status, payment, kinds) => {
    const id = await pay(`sandbox:dispute_after:0:${ending}`);
    if (ending === 'lost_again') await disputed(id, 'WON');
    const dispute = await disputed(id, status);
    expect(await statusOf(id)).toBe(payment);
    expect(dispute.closed_at).not.toBeNull();
    expect((await corrections(dispute.id)).map((one) => one.split(' ')[0])).toEqual(kinds);
  });

  it.concurrent.each([
    ['inquiry', 'INQUIRY', 'SUCCEEDED'],
    ['escalated', 'CHARGEBACK', 'IN_DISPUTE'],
    ['pre_arbitration', 'PRE_ARBITRATION', 'IN_DISPUTE'],
  ])('the ending %s leaves the dispute open in the stage %s', async (ending, stage, payment) => {
    const id = await pay(`sandbox:dispute_after:0:${ending}`);
    await vi.waitFor(
      async () => expect((await get(`/v1/disputes?payment_id=${id}`)).body[0]?.stage).toBe(stage),
      { timeout: 20_000, interval: 100 },
    );
    expect((await disputed(id, 'NEEDS_RESPONSE')).closed_at).toBeNull();
    expect(await statusOf(id)).toBe(payment);
  });
});

it('the changes of a dispute are events of their own, with the dispute and its payment', async () => {
  await wantEveryEvent(tables);
  const payment = await pay('sandbox:dispute_after:0:won');
  await disputed(payment, 'WON');
  const events = await tables.query(
    "SELECT type, sequence FROM event WHERE payment_id = $1 AND type LIKE 'dispute.%' ORDER BY sequence",
    [payment],
  );
  expect(events).toEqual([
    { type: 'dispute.opened', sequence: 1 },
    { type: 'dispute.updated', sequence: 2 },
    { type: 'dispute.closed', sequence: 3 },
  ]);
});

describe('the list of disputes', () => {
  it('disputes are listed newest first, page by page, and by status and time', async () => {
    const payments = [await pay('sandbox:dispute_after:0'), await pay('sandbox:dispute_after:0:inquiry')];
    const found = await Promise.all(payments.map((id) => disputed(id, 'NEEDS_RESPONSE')));
    const today = new Date().toISOString().slice(0, 10);
    const filter = `status=NEEDS_RESPONSE&opened_from=${today}&page_size=1`;
    const first = await get(`/v1/disputes?${filter}`);
    expect(first.body).toHaveLength(1);
    const [, next = ''] = /<([^>]+)>; rel="next"/.exec(first.link) ?? [];
    const second = await get(next.replace(/^https?:\/\/[^/]+/, ''));
    const shown = [...first.body, ...second.body];
    expect(shown.map(({ opened_at }) => opened_at)).toEqual(
      shown
        .map(({ opened_at }) => opened_at)
        .sort()
        .reverse(),
    );
    expect(new Set(shown.map(({ id }) => id)).size).toBe(2);
    const all = (await get(`/v1/disputes?page_size=100&status=NEEDS_RESPONSE`)).body;
    expect(all.map(({ id }: { id: string }) => id)).toEqual(
      expect.arrayContaining(found.map(({ id }) => id)),
    );
    expect((await get('/v1/disputes?opened_to=2020-01-01')).body).toEqual([]);
    expect((await get('/v1/disputes', headersTwo())).body).toEqual([]);
  });

  it.each([
    ['payment_id=1', 'payment_id'],
    ['status=LATE', 'status'],
    ['opened_from=yesterday', 'opened_from'],
    ['opened_to=tomorrow', 'opened_to'],
    ['page_size=-1', 'page_size'],
    ['page_token=AAAA', 'page_token'],
  ])('a list with %s is refused and names the field', async (query, field) => {
    const { status, body } = await get(`/v1/disputes?${query}`);
    expect(status).toBe(400);
    expect(JSON.stringify(body)).toContain(`"${field}"`);
  });
});
