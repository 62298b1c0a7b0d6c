import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { Dispute_Status, DisputeSchema, DisputeService } from '#gen/payments/v1/dispute_service_pb.js';
import { jsonEncoder } from '#src/wire/wire-json-encode.ts';
import { onService, server } from '../support/on-service.ts';
import { cardPayment, headersOne, headersTwo, withField } from '../support/payment-requests.ts';
import { RPCS, rpcTransports } from '../support/rpc-transports.ts';

onService();

const encode = jsonEncoder(DisputeSchema);
let clients: ReturnType<typeof rpcTransports>;
/** The account's disputes, newest first, as REST JSON shows them. */
let disputes: { id: string; payment_id: string }[] = [];

beforeAll(async () => {
  clients = rpcTransports(server.url);
  for (const ending of ['', ':inquiry', ':won']) {
    const payment = withField(
      cardPayment('4111111111111111'),
      'description',
      `sandbox:dispute_after:0${ending}`,
    );
    await fetch(`${server.url}/v1/payments`, {
      method: 'POST',
      headers: { ...headersOne(), 'content-type': 'application/json' },
      body: JSON.stringify(payment),
    });
  }
  await vi.waitFor(
    async () => {
      const response = await fetch(`${server.url}/v1/disputes`, { headers: headersOne() });
      const body = (await response.json()) as typeof disputes;
      const statuses = body.map((one) => (one as { status?: string }).status).sort();
      expect(statuses).toEqual(['NEEDS_RESPONSE', 'NEEDS_RESPONSE', 'WON']);
      disputes = body;
    },
    { timeout: 20_000, interval: 100 },
  );
}, 30_000);
afterAll(() => clients.close());

describe.each(RPCS)('disputes over %s', (rpc) => {
  const client = () => createClient(DisputeService, clients.transports[rpc]);
  const headers = headersOne();

  it('the list and the single disputes are those of REST, field by field', async () => {
    const { disputes: listed, nextPageToken } = await client().listDisputes({}, { headers });
    expect(listed.map((one) => JSON.parse(encode(one)))).toEqual(disputes);
    expect(nextPageToken).toBe('');
    const [first] = disputes;
    expect(JSON.parse(encode(await client().getDispute({ id: first?.id ?? '' }, { headers })))).toEqual(
      first,
    );
  });

  it('pages follow each other, and filters combine', async () => {
    const ids: string[] = [];
    let pageToken = '';
    do {
      const page = await client().listDisputes({ pageSize: 1, pageToken }, { headers });
      expect(page.disputes).toHaveLength(1);
      ids.push(...page.disputes.map(({ id }) => id));
      pageToken = page.nextPageToken;
    } while (pageToken !== '');
    expect(ids).toEqual(disputes.map(({ id }) => id));
    const status = Dispute_Status.WON;
    const [won, ...others] = (await client().listDisputes({ status }, { headers })).disputes;
    expect([won?.status, others]).toEqual([status, []]);
    const paymentId = won?.paymentId ?? '';
    const open = await client().listDisputes(
      { paymentId, status: Dispute_Status.NEEDS_RESPONSE },
      { headers },
    );
    expect(open.disputes).toEqual([]);
  });

  it("another account's dispute is not found, and an invalid filter is refused", async () => {
    const [first] = disputes;
    const codeOf = (call: Promise<unknown>) => call.then(String, (error) => ConnectError.from(error).code);
    const theirs = { headers: headersTwo() };
    expect((await client().listDisputes({}, theirs)).disputes).toEqual([]);
    expect(await codeOf(client().getDispute({ id: first?.id ?? '' }, theirs))).toBe(Code.NotFound);
    const invalid = client().listDisputes({ openedFrom: 'yesterday' }, { headers });
    expect(await codeOf(invalid)).toBe(Code.InvalidArgument);
  });
});
