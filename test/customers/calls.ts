import type { DescService } from '@bufbuild/protobuf';
import { type Client, createClient } from '@connectrpc/connect';
import { RPCS, rpcTransports } from '../support/rpc-transports.ts';

export const ONE = { 'public-api-key': 'pk_sandbox_one', 'private-secret-key': 'sk_sandbox_one' };
export const TWO = { 'public-api-key': 'pk_sandbox_two', 'private-secret-key': 'sk_sandbox_two' };
/** The key headers that a browser sends. */
export const PUBLIC_ONE = { 'public-api-key': 'pk_sandbox_one' };
export const UNKNOWN = '00000000-0000-4000-8000-000000000000';

/** A REST response. */
export type Response = {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary fields of the response.
  readonly json: any;
  readonly text: string;
};

export type Call = (
  method: string,
  path: string,
  body?: object | string,
  headers?: Readonly<Record<string, string>>,
) => Promise<Response>;

/** Calls REST endpoints, by default with the keys of account one. */
export function restCalls(url: string): Call {
  return async (method, path, body, headers = ONE) => {
    const response = await fetch(url + path, {
      method,
      headers: { ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = text !== '' && response.headers.get('content-type')?.includes('json');
    return {
      status: response.status,
      headers: response.headers,
      json: isJson ? JSON.parse(text) : undefined,
      text,
    };
  };
}

/** The clients for a service, one for each RPC protocol. */
export type RpcClients<Service extends DescService> = {
  readonly clients: readonly { readonly protocol: string; readonly client: Client<Service> }[];
  close(): void;
};

/** Opens a client for a service with each RPC protocol. */
export function rpcClients<Service extends DescService>(url: string, service: Service): RpcClients<Service> {
  const { transports, close } = rpcTransports(url);
  const clients = RPCS.map((protocol) => ({ protocol, client: createClient(service, transports[protocol]) }));
  return { clients, close };
}
