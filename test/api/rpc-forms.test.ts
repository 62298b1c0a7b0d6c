import { describe, expect, it } from 'vitest';
import { onService, server } from '../support/on-service.ts';
import { cardPayment, headersOne } from '../support/payment-requests.ts';

const CREATE = '/payments.v1.PaymentService/CreatePayment';
const GET = '/payments.v1.PaymentService/GetPayment';

onService();

const call = (path: string, init: RequestInit) => fetch(server.url + path, init);

describe('an rpc called with a wrong method or media type', () => {
  it.each([
    ['OPTIONS', CREATE, 'POST'],
    ['GET', CREATE, 'POST'],
    ['PUT', CREATE, 'POST'],
    ['OPTIONS', GET, 'GET, POST'],
    ['DELETE', GET, 'GET, POST'],
    ['OPTIONS', '/grpc.health.v1.Health/Watch', 'POST'],
  ])('%s %s gets 405 with the allowed methods', async (method, path, allowed) => {
    const response = await call(path, { method });
    expect([response.status, response.headers.get('allow')]).toEqual([405, allowed]);
    expect(await response.json()).toMatchObject({ code: 'METHOD_NOT_ALLOWED' });
  });

  it.each([
    'application/grpc-web-text',
    'application/grpc-web-text+proto',
    'text/plain',
    'application/connect+json',
  ])('an rpc with the media type %s gets 415 with the accepted media types', async (contentType) => {
    const response = await call(CREATE, {
      method: 'POST',
      headers: { 'content-type': contentType },
      body: 'x',
    });
    const { code, detail } = (await response.json()) as Record<string, string>;
    expect([response.status, code]).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE']);
    expect(detail).toMatch(/application\/json, application\/proto, application\/grpc.*not grpc-web-text/);
  });
});

describe('paths', () => {
  const body = JSON.stringify(cardPayment());
  const headers = { 'content-type': 'application/json' };

  it.each(['/v1/payments/', `${CREATE}/`])('a path may end with a slash: %s', async (path) => {
    const response = await call(path, { method: 'POST', body, headers: { ...headers, ...headersOne() } });
    expect((await response.text()).slice(0, 200)).toContain('"id"');
    expect(response.ok).toBe(true);
  });

  it.each(['POST', 'DELETE'])(
    '%s to an unknown path gets 404, whatever its body and content type',
    async (method) => {
      for (const contentType of ['application/json', 'text/plain', 'nonsense']) {
        for (const sent of [undefined, 'not JSON']) {
          const response = await call('/v1/unknown', {
            method,
            headers: { 'content-type': contentType },
            ...(sent !== undefined && { body: sent }),
          });
          expect([contentType, sent, response.status]).toEqual([contentType, sent, 404]);
        }
      }
    },
  );

  it('a POST to /v1/payments with the JSON content type and no body is read as an empty message', async () => {
    const response = await call('/v1/payments', { method: 'POST', headers: { ...headers, ...headersOne() } });
    expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([
      400,
      'INVALID_PARAMETERS',
    ]);
  });
});
