import http2 from 'node:http2';
import { create, toBinary } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { ListPaymentsRequestSchema } from '#gen/payments/v1/payment_service_pb.js';
import { onService, server } from '../support/on-service.ts';
import { headersOne } from '../support/payment-requests.ts';

onService();

const PATH = '/payments.v1.PaymentService/ListPayments';
const INVALID_ARGUMENT = '3';

/** Makes a gRPC call with a message of these flags. @returns grpc-status. */
async function statusOf(flags: number): Promise<string | undefined> {
  const message = toBinary(ListPaymentsRequestSchema, create(ListPaymentsRequestSchema, { pageSize: 1 }));
  const prefix = Buffer.alloc(5);
  prefix.writeUInt8(flags);
  prefix.writeUInt32BE(message.length, 1);
  const session = http2.connect(server.url);
  const headers = { ...headersOne(), ':method': 'POST', ':path': PATH, 'content-type': 'application/grpc' };
  const stream = session.request({ ...headers, te: 'trailers' });
  const seen: string[] = [];
  const note = (fields: http2.IncomingHttpHeaders) => seen.push(String(fields['grpc-status'] ?? ''));
  stream.on('response', note).on('trailers', note);
  stream.end(Buffer.concat([prefix, message]));
  await stream.resume().toArray();
  session.close();
  return seen.find((status) => status !== '');
}

it('a gRPC message with flags other than 0 and 1 is refused', async () => {
  expect(await statusOf(0)).toBe('0');
  for (const flags of [2, 4, 0x40, 0x80, 0xff]) {
    expect([flags, await statusOf(flags)]).toEqual([flags, INVALID_ARGUMENT]);
  }
});
