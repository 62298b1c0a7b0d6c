import http2 from 'node:http2';
import { create, toBinary, toJsonString } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { ListPaymentsRequestSchema } from '#gen/payments/v1/payment_service_pb.js';
import { onService, server } from '../support/on-service.ts';
import { headersOne } from '../support/payment-requests.ts';

onService();

const PATH = '/payments.v1.PaymentService/ListPayments';
const INVALID_ARGUMENT = '3';

/** Calls with a message of these flags. @returns grpc-status, which gRPC-Web sends at the end of the body. */
async function statusOf(contentType: string, flags: number): Promise<string | undefined> {
  const request = create(ListPaymentsRequestSchema, { pageSize: 1 });
  const message = contentType.endsWith('json')
    ? Buffer.from(toJsonString(ListPaymentsRequestSchema, request))
    : toBinary(ListPaymentsRequestSchema, request);
  const prefix = Buffer.alloc(5);
  prefix.writeUInt8(flags);
  prefix.writeUInt32BE(message.length, 1);
  const session = http2.connect(server.url);
  const headers = { ...headersOne(), ':method': 'POST', ':path': PATH, 'content-type': contentType };
  const stream = session.request({ ...headers, te: 'trailers' });
  const seen: string[] = [];
  const note = (fields: http2.IncomingHttpHeaders) => seen.push(String(fields['grpc-status'] ?? ''));
  stream.on('response', note).on('trailers', note);
  stream.end(Buffer.concat([prefix, message]));
  const body = Buffer.concat(await stream.toArray()).toString('latin1');
  session.close();
  return seen.find((status) => status !== '') ?? /grpc-status: *(\d+)/i.exec(body)?.[1];
}

it.each([
  'application/grpc',
  'application/grpc+json',
  'application/grpc-web+proto',
  'application/grpc-web+json',
])('a message in the form %s with flags other than 0 and 1 is refused', async (contentType) => {
  expect(await statusOf(contentType, 0)).toBe('0');
  for (const flags of [2, 4, 0x40, 0x80, 0xff]) {
    expect([flags, await statusOf(contentType, flags)]).toEqual([flags, INVALID_ARGUMENT]);
  }
});
