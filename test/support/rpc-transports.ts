import type { Transport } from '@connectrpc/connect';
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
  Http2SessionManager,
} from '@connectrpc/connect-node';

/** The ways to call an rpc; Connect in both its forms. */
export const RPCS = ['connectJson', 'connectProto', 'grpc', 'grpcWeb'] as const;
export type Rpc = (typeof RPCS)[number];

/** Opens a transport to the service at `url` for each way to call an rpc. gRPC's connection must be closed. */
export function rpcTransports(url: string): { transports: Record<Rpc, Transport>; close(): void } {
  const sessionManager = new Http2SessionManager(url);
  const web = { baseUrl: url, httpVersion: '1.1' } as const;
  return {
    transports: {
      connectJson: createConnectTransport({ ...web, useBinaryFormat: false }),
      connectProto: createConnectTransport({ ...web, useBinaryFormat: true }),
      grpc: createGrpcTransport({ baseUrl: url, sessionManager }),
      grpcWeb: createGrpcWebTransport(web),
    },
    close: () => sessionManager.abort(),
  };
}
