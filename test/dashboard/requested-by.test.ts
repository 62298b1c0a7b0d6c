import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { SANDBOX_OPERATOR_KEY } from '#src/config.ts';
import { merchantOne, pathOf, signIn } from '../support/dashboard.ts';
import { onService, server } from '../support/on-service.ts';
import { headersOne } from '../support/payment-requests.ts';

onService();

it("a payment's page says of each refund which operator requested it, or with which key the API did", async () => {
  const [operator, merchant] = [await signIn(server, SANDBOX_OPERATOR_KEY), merchantOne(server)];
  const paid = await merchant.pay();
  const refund = async (fields: object, headers: object) => {
    const response = await fetch(`${server.url}/v1/payments/${paid.id}/refund`, {
      method: 'POST',
      headers: { ...headersOne(), 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ amount: { currency: 'USD', value: 1 }, ...fields }),
    });
    expect([response.status, await response.text()]).toEqual([
      expect.toSatisfy((it) => it < 300),
      expect.anything(),
    ]);
  };
  const key = `api-${randomUUID()}`;
  await refund({}, { 'x-idempotency-key': key });
  const form = { amount: '1.25', key: `dashboard-${randomUUID()}` };
  expect((await operator.post(`${pathOf(paid)}/refund`, form)).status).toBe(303);
  const page = await (await operator.get(pathOf(paid))).text();
  const refunds = [...page.matchAll(/<h3>REFUND .*?<\/li>/gs)].map(([text]) => text);
  expect(refunds).toHaveLength(2);
  expect(refunds[0]).toContain(`requested through the API with the key ${key}`);
  expect(refunds[1]).toMatch(/requested by operator-[0-9a-f]{8} from 127\.0\.0\.1/);
  expect(page).not.toMatch(/<h3>PURCHASE(?:(?!<\/li>).)*requested/s);
});
