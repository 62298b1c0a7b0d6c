import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { createClient, type Transport } from '@connectrpc/connect';
import { PaymentSchema } from '#gen/payments/v1/payment_pb.js';
import {
  type CreatePaymentRequest,
  CreatePaymentRequestSchema,
  PaymentService,
} from '#gen/payments/v1/payment_service_pb.js';
import { parseJson } from '#src/wire/parse-json.ts';
import { jsonDecoder } from '#src/wire/wire-json-decode.ts';
import { jsonEncoder } from '#src/wire/wire-json-encode.ts';
import { rpcTransports } from './rpc-transports.ts';

/** One of the interface's example requests, with its complete expected record. */
export type Scenario = {
  /** The directory within test/scenarios. */
  readonly name: string;
  /** The body of the request, as a merchant would send it. */
  readonly request: string;
  /** The record, with placeholders for generated values; see `differences`. */
  readonly response: string;
  /** The request's keys: headers.json, or both keys of account one. */
  readonly keys: Readonly<Record<string, string>>;
};

const DIRECTORY = fileURLToPath(new URL('../scenarios/', import.meta.url));
const BOTH_KEYS = { 'public-api-key': 'pk_sandbox_one', 'private-secret-key': 'sk_sandbox_one' };

/** Every scenario, in the order of their numbers. */
export function loadScenarios(): Scenario[] {
  return readdirSync(DIRECTORY)
    .sort()
    .map((name) => {
      const read = (file: string) => readFileSync(`${DIRECTORY}${name}/${file}`, 'utf8');
      return {
        name,
        request: read('request.json'),
        response: read('response.json'),
        keys: existsSync(`${DIRECTORY}${name}/headers.json`) ? JSON.parse(read('headers.json')) : BOTH_KEYS,
      };
    });
}

const decode = jsonDecoder(CreatePaymentRequestSchema);
const encode = jsonEncoder(PaymentSchema);

/** A scenario's request as the message that an rpc client would send. */
export function requestMessage(scenario: Scenario): CreatePaymentRequest {
  return decode(parseJson(Buffer.from(scenario.request)));
}

/** A response: the record as REST JSON, whatever the protocol. `status` is 200 for every rpc. */
export type Answer = { readonly record: string; readonly headers: Headers; readonly status: number };

/** Sends a scenario's request under an idempotency key. Throws if an rpc is refused; REST returns the status. */
export type Send = (scenario: Scenario, idempotencyKey: string) => Promise<Answer>;

/** Every protocol of the service, each over its own sockets. */
export type Clients = {
  readonly rest: Send;
  readonly connect: Send;
  readonly grpc: Send;
  readonly grpcWeb: Send;
  /** Closes the kept-alive sockets. */
  close(): void;
};

/** Clients for the service at `url`. Connect uses JSON; gRPC and gRPC-Web use binary, as is usual for each. */
export function createClients(url: string): Clients {
  const { transports, close } = rpcTransports(url);
  return {
    rest: (scenario, idempotencyKey) => sendRest(url, scenario, idempotencyKey),
    connect: sendRpc(transports.connectJson),
    grpc: sendRpc(transports.grpc),
    grpcWeb: sendRpc(transports.grpcWeb),
    close,
  };
}

async function sendRest(url: string, scenario: Scenario, idempotencyKey: string): Promise<Answer> {
  const response = await fetch(`${url}/v1/payments`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json',
      'X-Idempotency-Key': idempotencyKey,
      ...scenario.keys,
    },
    body: scenario.request,
  });
  return { record: await response.text(), headers: response.headers, status: response.status };
}

function sendRpc(transport: Transport): Send {
  const client = createClient(PaymentService, transport);
  return async (scenario, idempotencyKey) => {
    let headers = new Headers();
    const payment = await client.createPayment(requestMessage(scenario), {
      headers: { 'x-idempotency-key': idempotencyKey, ...scenario.keys },
      onHeader: (received) => {
        headers = received;
      },
    });
    return { record: encode(payment), headers, status: 200 };
  };
}
