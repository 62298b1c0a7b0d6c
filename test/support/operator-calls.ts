import { type Client, createClient, type Transport } from '@connectrpc/connect';
import { OperatorService } from '#gen/payments/v1/operator_service_pb.js';
import {
  type CreatePaymentRequest,
  CreatePaymentRequestSchema,
} from '#gen/payments/v1/payment_service_pb.js';
import { parseJson } from '#src/wire/parse-json.ts';
import { jsonDecoder } from '#src/wire/wire-json-decode.ts';
import type { RequestJson } from './payment-requests.ts';
import { type Rpc, rpcTransports } from './rpc-transports.ts';

/** The key header of a sandbox operator. */
export const OPERATOR: KeyHeaders = { 'operator-key': 'op_sandbox' };
export type KeyHeaders = Readonly<Record<string, string>>;

/** A REST response. */
export type RestAnswer = {
  readonly status: number;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: any response, for comparison with the expected one.
  readonly json: any;
};

export type OperatorCalls = {
  list(headers?: KeyHeaders): Promise<RestAnswer>;
  explain(payment: unknown, options?: { headers?: KeyHeaders; key?: string }): Promise<RestAnswer>;
  /** Makes a payment, as a merchant does. */
  pay(request: RequestJson, headers: KeyHeaders): Promise<RestAnswer>;
  readonly rpcs: Readonly<Record<Rpc, Client<typeof OperatorService>>>;
  /** Every REST response, for searches for data that must not appear. */
  readonly answers: readonly string[];
  close(): void;
};

/** Functions that call the operators' service at `url` and make payments, over REST by default. */
export function operatorCalls(url: string): OperatorCalls {
  const { transports, close } = rpcTransports(url);
  const client = (transport: Transport) => createClient(OperatorService, transport);
  const answers: string[] = [];
  const call = async (path: string, init: RequestInit): Promise<RestAnswer> => {
    const response = await fetch(url + path, init);
    const text = await response.text();
    answers.push(text);
    return { status: response.status, text, json: JSON.parse(text) };
  };
  const post = (path: string, body: object, headers: KeyHeaders) =>
    call(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
  return {
    list: (headers = OPERATOR) => call('/v1/connections', { headers }),
    explain: (payment, { headers = OPERATOR, key } = {}) =>
      post('/v1/routes/explain', { payment, idempotency_key: key }, headers),
    pay: (request, headers) => post('/v1/payments', request, headers),
    rpcs: {
      connectJson: client(transports.connectJson),
      connectProto: client(transports.connectProto),
      grpc: client(transports.grpc),
      grpcWeb: client(transports.grpcWeb),
    },
    answers,
    close,
  };
}

const decode = jsonDecoder(CreatePaymentRequestSchema);

/** Returns a request as the message that an rpc client would send. */
export function requestMessage(request: RequestJson): CreatePaymentRequest {
  return decode(parseJson(Buffer.from(JSON.stringify(request))));
}
