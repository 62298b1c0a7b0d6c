import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A proxy between two processes that can be closed. */
export type TcpProxy = {
  readonly port: number;
  /** Sets the port to which it forwards new connections. */
  setTarget(port: number): void;
  /** Refuses connections and resets the open ones. */
  down(): void;
  /** Accepts connections but transfers no bytes, including on open ones. */
  silence(): void;
  up(): void;
  close(): Promise<void>;
};

/** Both ends of a connection. `wait` resolves once the proxy transfers bytes. */
export type Link = { readonly client: Socket; readonly server: Socket; wait(): Promise<void> };

/** Transfers the messages of a connection, in each direction until the sender ends its side. */
export type Carrier = {
  requests(link: Link): Promise<void>;
  responses(link: Link): Promise<void>;
};

/** Starts a proxy on a free loopback port. Calls `carrierOf` once per connection. */
export async function startTcpProxy(targetPort: number, carrierOf: () => Carrier): Promise<TcpProxy> {
  let target = targetPort;
  let refusing = false;
  let quiet: PromiseWithResolvers<void> | undefined;
  const sockets = new Set<Socket>();

  const own = (socket: Socket) => {
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on('error', () => {});
    socket.once('close', () => sockets.delete(socket));
  };
  const proxy = createServer({ allowHalfOpen: true }, (client) => {
    own(client);
    if (refusing) {
      client.resetAndDestroy();
      return;
    }
    const server = connect(target, '127.0.0.1');
    own(server);
    const link: Link = { client, server, wait: async () => quiet?.promise };
    const carrier = carrierOf();
    // Bytes from a sender that has died are still delivered if a gate releases them later.
    carrier.requests(link).then(
      () => server.end(),
      () => server.end(),
    );
    carrier.responses(link).then(
      () => client.end(),
      () => client.resetAndDestroy(),
    );
  });
  const listen = (port: number) =>
    new Promise<void>((resolve, reject) => {
      proxy.once('error', reject);
      proxy.listen(port, '127.0.0.1', resolve);
    });
  await listen(0);
  const { port } = proxy.address() as AddressInfo;

  const resetAll = () => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  return {
    port,
    setTarget: (next) => {
      target = next;
    },
    down() {
      refusing = true;
      resetAll();
    },
    silence() {
      quiet ??= Promise.withResolvers();
    },
    up() {
      refusing = false;
      quiet?.resolve();
      quiet = undefined;
    },
    close() {
      quiet?.resolve();
      resetAll();
      return new Promise((resolve) => proxy.close(() => resolve()));
    },
  };
}
