import { createClient } from '@connectrpc/connect';
import { createGrpcTransport, Http2SessionManager } from '@connectrpc/connect-node';
import { CreatePaymentRequestSchema, PaymentService } from '#gen/payments/v1/payment_service_pb.js';
import { parseJson } from '#src/wire/parse-json.ts';
import { jsonDecoder } from '#src/wire/wire-json-decode.ts';
import { headersOne } from '../support/payment-requests.ts';
import type { Order } from './orders.ts';

const decode = jsonDecoder(CreatePaymentRequestSchema);

/** Sends orders of account one over gRPC. */
export function grpcSender(url: string): {
  /** Sends an order. @returns the payment's id; undefined if it was refused. */
  send(order: Order): Promise<string | undefined>;
  close(): void;
} {
  const sessionManager = new Http2SessionManager(url);
  const client = createClient(PaymentService, createGrpcTransport({ baseUrl: url, sessionManager }));
  return {
    send: (order) =>
      client
        .createPayment(decode(parseJson(Buffer.from(order.body))), { headers: headersOne(order.key) })
        .then(
          ({ id }) => id,
          () => undefined,
        ),
    close: () => sessionManager.abort(),
  };
}
