import { expect, it } from 'vitest';
import { onService, server } from '../support/on-service.ts';

onService();

// biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary fields of the response.
async function call(method: string, request?: object): Promise<{ json: any }> {
  const response = await fetch(`${server.url}/v1/catalogue`, {
    method,
    headers: { 'operator-key': 'op_sandbox', 'content-type': 'application/json' },
    ...(request && { body: JSON.stringify(request) }),
  });
  return { json: await response.json() };
}

it('what is doubtful is a warning with its place in the text, and is published', async () => {
  const { version, catalogue } = (await call('GET')).json;
  const narrow = { condition: "type == 'OXXO' && country == 'BR'" };
  const routes = catalogue.routes
    .filter(({ id }: { id: number }) => [4, 1, 5, 2, 6, 7].includes(id))
    .map((route: { id: number }) => (route.id === 6 ? { ...route, ...narrow } : route));
  const yaml = JSON.stringify({ ...catalogue, routes }, undefined, 1);
  const change = { yaml, expected_version: version, comment: 'a test' };
  const at = routes.findIndex(({ id }: { id: number }) => id === 6);
  const target = `routes[${at}].targets[0].connection`;
  const checked = (await call('PATCH', { ...change, validate_only: true })).json;
  const byPath = new Map(checked.faults.map((fault: { path: string }) => [fault.path, fault]));
  const unrouted = [1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13].map((i) => `payment_method_types[${i}]`);
  expect([...byPath.keys()]).toEqual(expect.arrayContaining([...unrouted, target]));
  expect(byPath.get(target)).toMatchObject({
    ...{ severity: 'WARNING', code: 'NOT_SUPPORTED', line: expect.any(Number) },
    message: expect.stringContaining('supports nothing that the route accepts (OXXO)'),
  });
  const published = (await call('PATCH', change)).json;
  expect(published).toMatchObject({ version: version + 1, faults: checked.faults });
  const again = (await call('PATCH', { ...change, expected_version: version + 1 })).json;
  expect(again).toMatchObject({ version: 0, changes: [], faults: checked.faults });
});
