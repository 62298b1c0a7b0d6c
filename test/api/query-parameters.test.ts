import { describe, expect, it } from 'vitest';
import { onService, server } from '../support/on-service.ts';
import { readContract } from '../support/openapi-contract.ts';
import { headersOne } from '../support/payment-requests.ts';

onService();

const UNKNOWN = '00000000-0000-4000-8000-000000000000';
const gets = readContract().operations.filter(({ verb }) => verb === 'GET');

async function get(path: string) {
  const response = await fetch(server.url + path.replaceAll(/\{\w+\}/g, UNKNOWN), {
    headers: { ...headersOne(), 'operator-key': 'op_sandbox' },
  });
  // biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary fields of the response.
  return { status: response.status, text: JSON.stringify(await response.json()) as any };
}

describe('query parameters', () => {
  it.each(gets.map(({ path }) => path))(
    'an unknown query parameter is refused by name at GET %s',
    async (path) => {
      const { status, text } = await get(`${path}?updated_from=2026-01-01&colour=red&page_sise=2`);
      expect([status, JSON.parse(text).errors.map(({ field }: { field: string }) => field)]).toEqual([
        ...[400, ['updated_from', 'colour', 'page_sise']],
      ]);
    },
  );

  it.each([
    ['/v1/payments/{id}?id=1', 'id'],
    ['/v1/payments?Status=SUCCEEDED', 'Status'],
    ['/v1/payments?status[]=SUCCEEDED', 'status[]'],
    ['/v1/payments?colour=', 'colour'],
    ['/v1/payments?4111111111111111=a', '?'],
    [`/v1/payments?${'a'.repeat(100)}=a`, '?'],
  ])('a refused parameter is named, unless its name could be a secret: %s', async (path, field) => {
    const { status, text } = await get(path);
    expect([status, JSON.parse(text).errors[0].field]).toEqual([400, field]);
    expect(text).not.toMatch(/4111|a{100}/);
  });

  it('a refusal names at most 20 parameters', async () => {
    const names = Array.from({ length: 30 }, (_, i) => `p${i}=1`).join('&');
    expect(JSON.parse((await get(`/v1/payments?${names}`)).text).errors).toHaveLength(20);
  });
});
