import http2 from 'node:http2';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { fromBinary, fromJson, type JsonValue, toBinary } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { errorFromJson } from '@connectrpc/connect/protocol-connect';
import { findTrailerError } from '@connectrpc/connect/protocol-grpc';
import { trailerFlag, trailerParse } from '@connectrpc/connect/protocol-grpc-web';
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from '#gen/google/rpc/error_details_pb.js';
import { PaymentSchema } from '#gen/payments/v1/payment_pb.js';
import { CreatePaymentRequestSchema } from '#gen/payments/v1/payment_service_pb.js';
import { parseJson } from '#src/wire/parse-json.ts';
import { jsonDecoder } from '#src/wire/wire-json-decode.ts';
import { jsonEncoder } from '#src/wire/wire-json-encode.ts';

/** Every way to call the service, as bytes: unlike generated clients, these can also send invalid requests. */
export const PROTOCOLS = ['rest', 'connectJson', 'connectProto', 'grpc', 'grpcWeb'] as const;
export type Protocol = (typeof PROTOCOLS)[number];
export const RPC_PROTOCOLS = PROTOCOLS.filter((protocol) => protocol !== 'rest');

/** A response, in one form for every protocol. */
export type Reply = {
  /** The HTTP status; 200 for every gRPC and gRPC-Web response. */
  readonly status: number;
  /** Headers; for rpcs including the metadata of errors and trailers. */
  readonly headers: Headers;
  /** The record as REST JSON text; "" if the call was refused. */
  readonly record: string;
  /** The reason for the refusal and, for rpcs only, the name of its google.rpc.Code. */
  readonly reason: string | undefined;
  readonly code: string | undefined;
  readonly fields: readonly { readonly field: string; readonly code: string; readonly message: string }[];
  readonly retryAfterS: number | undefined;
  /** Everything received, for searches for data that must not appear. */
  readonly raw: string;
};

export type KeyHeaders = Readonly<Record<string, string>>;

export type ApiClients = {
  /** Sends a request given as REST JSON, in the form of the protocol. */
  create(protocol: Protocol, request: object, headers: KeyHeaders): Promise<Reply>;
  /** Sends a body unchanged. */
  send(protocol: Protocol, body: Uint8Array | string, headers: KeyHeaders): Promise<Reply>;
  close(): void;
};

const RPC_PATH = '/payments.v1.PaymentService/CreatePayment';
// It is parsed without the limits that the service itself must enforce.
const decode = jsonDecoder(CreatePaymentRequestSchema, { unknownFields: 'reject' });
const encode = jsonEncoder(PaymentSchema);

/** Clients for the service at `url`. */
export function apiClients(url: string): ApiClients {
  const session = http2.connect(url);
  session.on('error', () => {});
  const send: ApiClients['send'] = (protocol, body, headers) => {
    const bytes = Buffer.from(body as Uint8Array);
    switch (protocol) {
      case 'rest':
        return sendRest(url, bytes, headers);
      case 'connectJson':
        return sendConnect(url, 'application/json', bytes, headers);
      case 'connectProto':
        return sendConnect(url, 'application/proto', bytes, headers);
      case 'grpc':
        return sendGrpc(session, bytes, headers);
      case 'grpcWeb':
        return sendGrpcWeb(url, bytes, headers);
    }
  };
  return {
    send,
    create: (protocol, request, headers) => send(protocol, requestBody(protocol, request), headers),
    close: () => session.destroy(),
  };
}

/** Converts a request given as REST JSON to the body of a protocol. */
export function requestBody(protocol: Protocol, request: object): Uint8Array {
  const json = Buffer.from(JSON.stringify(request));
  if (protocol === 'rest' || protocol === 'connectJson') return json;
  return toBinary(CreatePaymentRequestSchema, decode(parseJson(json)));
}

async function sendRest(url: string, body: Uint8Array, headers: KeyHeaders): Promise<Reply> {
  const response = await post(`${url}/v1/payments`, 'application/json', body, headers);
  const raw = await response.text();
  const retryAfter = response.headers.get('retry-after');
  const problem = response.status < 400 ? undefined : parseProblem(raw);
  return {
    status: response.status,
    headers: response.headers,
    record: response.status === 201 ? raw : '',
    reason: problem?.code,
    code: undefined,
    fields: problem?.errors ?? [],
    retryAfterS: retryAfter === null ? undefined : Number(retryAfter),
    raw: raw + printed(response.headers),
  };
}

type ProblemJson = { code: string; errors: Reply['fields'] };

function parseProblem(text: string): ProblemJson {
  return JSON.parse(text) as ProblemJson;
}

async function sendConnect(
  url: string,
  contentType: string,
  body: Uint8Array,
  headers: KeyHeaders,
): Promise<Reply> {
  const response = await post(url + RPC_PATH, contentType, body, headers);
  const bytes = new Uint8Array(await response.arrayBuffer());
  const raw = Buffer.from(bytes).toString('latin1') + printed(response.headers);
  if (response.status !== 200) {
    const json = JSON.parse(Buffer.from(bytes).toString('utf8')) as JsonValue;
    const error = errorFromJson(json, response.headers, new ConnectError('no Connect error', Code.Unknown));
    return refused(response.status, error, raw);
  }
  const payment =
    contentType === 'application/proto'
      ? fromBinary(PaymentSchema, bytes)
      : fromJson(PaymentSchema, JSON.parse(Buffer.from(bytes).toString('utf8')) as JsonValue);
  return accepted(response.headers, encode(payment), raw);
}

async function sendGrpcWeb(url: string, body: Uint8Array, headers: KeyHeaders): Promise<Reply> {
  const response = await post(
    url + RPC_PATH,
    'application/grpc-web+proto',
    enveloped(body, headers),
    headers,
  );
  const bytes = Buffer.from(await response.arrayBuffer());
  const received = new Headers(response.headers);
  const frames = split(bytes);
  for (const { flags, data } of frames) {
    if (flags & trailerFlag) for (const [name, value] of trailerParse(data)) received.set(name, value);
  }
  return grpcReply(response.status, received, frames[0], bytes);
}

function sendGrpc(session: http2.ClientHttp2Session, body: Uint8Array, headers: KeyHeaders): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const stream = session.request({
      ...{ ':method': 'POST', ':path': RPC_PATH, 'content-type': 'application/grpc+proto', te: 'trailers' },
      ...headers,
    });
    const received = new Headers();
    const chunks: Uint8Array[] = [];
    let status = 0;
    const take = (fields: http2.IncomingHttpHeaders) => {
      status ||= Number(fields[':status'] ?? 0);
      for (const [name, value] of Object.entries(fields)) {
        if (!name.startsWith(':')) received.set(name, String(value));
      }
    };
    stream.on('response', take);
    stream.on('trailers', take);
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('error', reject);
    const bytes = () => Buffer.concat(chunks);
    const ended = new Promise<void>((end) => stream.on('end', end));
    ended.then(() => grpcReply(status, received, split(bytes())[0], bytes())).then(resolve, reject);
    stream.end(enveloped(body, headers));
  });
}

function grpcReply(status: number, headers: Headers, first: Frame | undefined, bytes: Buffer): Reply {
  const error = findTrailerError(headers);
  const raw = bytes.toString('latin1') + printed(headers);
  if (error) return refused(status, error, raw, headers);
  if (!first) throw new Error(`neither a message nor an error: ${raw}`);
  return accepted(headers, encode(fromBinary(PaymentSchema, expanded(first, headers))), raw);
}

/**
 * Decompresses a frame: a client that sends compressed frames without saying what it accepts gets the same compression
 * back.
 */
function expanded({ flags, data }: Frame, headers: Headers): Buffer {
  if ((flags & 1) === 0) return data;
  return headers.get('grpc-encoding') === 'br' ? brotliDecompressSync(data) : gunzipSync(data);
}

/** gRPC's length-prefixed message, compressed if the headers say so. */
function enveloped(message: Uint8Array, headers: KeyHeaders): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt8('grpc-encoding' in headers ? 1 : 0);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

type Frame = { readonly flags: number; readonly data: Buffer };

function split(bytes: Buffer): Frame[] {
  const frames: Frame[] = [];
  for (let at = 0; at + 5 <= bytes.length; ) {
    const end = at + 5 + bytes.readUInt32BE(at + 1);
    frames.push({ flags: bytes.readUInt8(at), data: bytes.subarray(at + 5, end) });
    at = end;
  }
  return frames;
}

function accepted(headers: Headers, record: string, raw: string): Reply {
  return {
    status: 200,
    headers,
    record,
    reason: undefined,
    code: undefined,
    fields: [],
    retryAfterS: undefined,
    raw,
  };
}

function refused(status: number, error: ConnectError, raw: string, headers = error.metadata): Reply {
  const [retry] = error.findDetails(RetryInfoSchema);
  const details = error.details.map((detail) =>
    'value' in detail ? Buffer.from(detail.value as Uint8Array) : Buffer.alloc(0),
  );
  return {
    status,
    headers,
    record: '',
    reason: error.findDetails(ErrorInfoSchema)[0]?.reason,
    code: Code[error.code],
    fields: error.findDetails(BadRequestSchema).flatMap(({ fieldViolations }) =>
      fieldViolations.map(({ field, reason, description }) => ({
        field,
        code: reason,
        message: description,
      })),
    ),
    retryAfterS: retry && Number(retry.retryDelay?.seconds),
    // Details are encoded in base64; they are decoded so that searches find their content.
    raw: raw + details.map((bytes) => bytes.toString('latin1')).join(' '),
  };
}

function post(url: string, contentType: string, body: Uint8Array, headers: KeyHeaders): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { 'content-type': contentType, ...headers },
    body: Buffer.from(body),
  });
}

function printed(headers: Headers): string {
  return [...headers].map(([name, value]) => `\n${name}: ${value}`).join('');
}
