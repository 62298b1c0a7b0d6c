import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import * as grpc from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { onService, server } from './support/on-service.ts';
import { cardPayment, headersOne } from './support/payment-requests.ts';

/*
 * A merchant's own gRPC stack: grpc-js, with messages that protobufjs creates from the .proto files. It uses
 * neither our code nor Connect's.
 */
const ROOT = join(import.meta.dirname, '..');
const loaded = loadSync(
  ['payments/v1/payment_service.proto', 'google/rpc/status.proto', 'google/rpc/error_details.proto'],
  {
    includeDirs: [join(ROOT, 'proto'), join(ROOT, 'third_party/googleapis')],
    ...{ keepCase: true, enums: String, longs: String, defaults: true, oneofs: true },
  },
);

// biome-ignore lint/suspicious/noExplicitAny: a client created at run time has no types.
type Untyped = any;
const root = grpc.loadPackageDefinition(loaded) as Untyped;

let client: Untyped;

onService({ config: { inProgressWaitMs: 300 } });
beforeAll(async () => {
  client = new root.payments.v1.PaymentService(new URL(server.url).host, grpc.credentials.createInsecure());
});

afterAll(() => client?.close());

type Answer = { error?: grpc.ServiceError; payment?: Untyped; headers?: grpc.Metadata };

function createPayment(request: object, headers: Record<string, string> = headersOne()): Promise<Answer> {
  const metadata = new grpc.Metadata();
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
  return new Promise((resolve) => {
    let received: grpc.Metadata | undefined;
    const call = client.CreatePayment(
      request,
      metadata,
      (error: grpc.ServiceError | null, payment: Untyped) =>
        resolve({ ...(error ? { error } : { payment }), ...(received && { headers: received }) }),
    );
    call.on('metadata', (metadata: grpc.Metadata) => {
      received = metadata;
    });
  });
}

/** Returns a request for protobufjs: like REST's JSON, but a decimal is a message. */
const request = (value = '10') => ({ ...cardPayment(), amount: { currency: 'USD', value: { value } } });

/** Returns an error's details by type, decoded by protobufjs from gRPC's trailer. */
function detailsOf(error: grpc.ServiceError | undefined): Record<string, Untyped> {
  const decode = (type: string, bytes: Buffer) => (loaded[type] as Untyped).deserialize(bytes);
  const [bytes] = error?.metadata.get('grpc-status-details-bin') ?? [];
  const { details } = decode('google.rpc.Status', bytes as Buffer);
  const types = details.map(({ type_url }: Untyped) => type_url.split('/').at(-1));
  return Object.fromEntries(
    details.map(({ value }: Untyped, i: number) => [types[i].split('.').at(-1), decode(types[i], value)]),
  );
}

describe('grpc-js on the service’s only port', () => {
  it('grpc-js creates a payment', async () => {
    const { payment, error } = await createPayment(request('3000'));
    expect(error).toBeUndefined();
    expect(payment).toMatchObject({
      ...{ status: 'SUCCEEDED', sub_status: 'APPROVED', workflow: 'DIRECT' },
      amount: { value: { value: '3000.00' }, captured: { value: '0.00' }, currency: 'USD' },
      payment_method: { payment_method_detail: { kind: 'card', card: { capture: true, installments: 1 } } },
    });
    // An absent field differs from an empty one.
    expect(payment.customer_payer).not.toHaveProperty('gender');
    expect(payment.transactions_history).toEqual([payment.transactions]);
    expect(Number(payment.created_at.seconds)).toBeGreaterThan(1_700_000_000);
  });

  it('a repeated request gets the same payment, through grpc-js and over REST', async () => {
    const key = randomUUID();
    const first = await createPayment(request(), headersOne(key));
    const second = await createPayment(request(), headersOne(key));
    expect(second.payment).toEqual(first.payment);
    expect([first.headers?.get('idempotent-replayed'), second.headers?.get('idempotent-replayed')]).toEqual([
      [],
      ['true'],
    ]);
    const rest = await fetch(`${server.url}/v1/payments`, {
      method: 'POST',
      headers: { ...headersOne(key), 'content-type': 'application/json' },
      body: JSON.stringify(cardPayment()),
    });
    expect(rest.headers.get('idempotent-replayed')).toBe('true');
    expect(((await rest.json()) as { id: string }).id).toBe(first.payment.id);
  });

  it('grpc-js receives a decline as a payment', async () => {
    const declined = { ...cardPayment('4000000000009995'), amount: request().amount };
    const { payment } = await createPayment(declined);
    expect([payment.status, payment.transactions.response_code]).toEqual(['DECLINED', 'INSUFFICIENT_FUNDS']);
  });

  it('grpc-js receives the invalid field and the reason', async () => {
    const { error } = await createPayment(request('0'));
    expect([error?.code, error?.details]).toEqual([
      grpc.status.INVALID_ARGUMENT,
      'amount.value: must be above zero',
    ]);
    expect(detailsOf(error)).toMatchObject({
      ErrorInfo: { reason: 'INVALID_PARAMETERS', domain: 'payments.v1' },
      BadRequest: {
        field_violations: [
          { field: 'amount.value', reason: 'OUT_OF_RANGE', description: 'must be above zero' },
        ],
      },
    });
  });

  it('grpc-js receives the error for invalid credentials', async () => {
    const { error } = await createPayment(request(), { ...headersOne(), 'private-secret-key': 'wrong' });
    expect(error?.code).toBe(grpc.status.UNAUTHENTICATED);
    expect(detailsOf(error)).toMatchObject({ ErrorInfo: { reason: 'INVALID_CREDENTIALS' } });
  });

  it('grpc-js receives the delay before a retry', async () => {
    const key = randomUUID();
    const slow = { ...cardPayment('4000000000007007'), amount: request().amount };
    const first = createPayment(slow, headersOne(key));
    const { error } = await createPayment(slow, headersOne(key));
    expect(error?.code).toBe(grpc.status.ABORTED);
    expect(error?.metadata.get('retry-after')).toEqual(['1']);
    expect(detailsOf(error)).toMatchObject({
      ErrorInfo: { reason: 'REQUEST_IN_PROGRESS' },
      RetryInfo: { retry_delay: { seconds: expect.anything() } },
    });
    expect((await first).payment.status).toBe('SUCCEEDED');
  });

  it('grpc-js receives the error for a message that is too large', async () => {
    const { error } = await createPayment({ ...request(), description: 'x'.repeat(300 * 1024) });
    expect(error?.code).toBe(grpc.status.RESOURCE_EXHAUSTED);
    expect(detailsOf(error)).toMatchObject({ ErrorInfo: { reason: 'REQUEST_TOO_LARGE' } });
  });

  it('grpc-js receives the error for an unknown rpc', async () => {
    const { error } = await new Promise<Answer>((resolve) => {
      const raw = new grpc.Client(new URL(server.url).host, grpc.credentials.createInsecure());
      const identity = (bytes: Buffer) => bytes;
      const path = '/payments.v1.PaymentService/Nothing';
      raw.makeUnaryRequest(path, identity, identity, Buffer.alloc(0), (error) => {
        raw.close();
        resolve({ ...(error && { error }) });
      });
    });
    expect([error?.code, error?.details]).toEqual([grpc.status.UNIMPLEMENTED, 'there is no such rpc']);
    expect(detailsOf(error)).toMatchObject({ ErrorInfo: { reason: 'NOT_FOUND', domain: 'payments.v1' } });
  });

  it('a hundred concurrent calls of grpc-js are served on one connection', async () => {
    const answers = await Promise.all(Array.from({ length: 100 }, () => createPayment(request())));
    expect(new Set(answers.map(({ payment }) => payment?.status))).toEqual(new Set(['SUCCEEDED']));
  });
});
