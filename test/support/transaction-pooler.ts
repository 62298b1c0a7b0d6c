import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import pg from 'pg';

/** A connection pooler in front of a test's database. */
export type TransactionPooler = {
  /** The URL of the database through it. */
  readonly url: string;
  close(): Promise<void>;
};

const AUTHENTICATED = Buffer.from('R\0\0\0\x08\0\0\0\0', 'latin1');
const READY_FOR_QUERY = Buffer.from('Z\0\0\0\x05I', 'latin1');
/** Messages after which a client waits for ReadyForQuery. */
const SYNC_OR_QUERY = /[SQ]/;

/**
 * Starts a pooler in transaction mode like old poolers without support for prepared statements: all clients share one
 * connection, each from its BEGIN to its COMMIT, and their startup parameters are dropped.
 */
export async function startTransactionPooler(databaseUrl: string): Promise<TransactionPooler> {
  const server = await openSharedConnection(databaseUrl);
  const clients = new Set<Socket>();
  const pooler = createServer((client) => {
    clients.add(client);
    client.on('error', () => {}).once('close', () => clients.delete(client));
    void serve(client, server);
  });
  pooler.listen(0, '127.0.0.1');
  await once(pooler, 'listening');
  const url = new URL(databaseUrl);
  url.port = String((pooler.address() as AddressInfo).port);
  return {
    url: url.href,
    async close() {
      for (const client of clients) client.destroy();
      pooler.close();
      await server.close();
    },
  };
}

async function serve(client: Socket, server: SharedConnection): Promise<void> {
  let transaction: Lock | undefined;
  let batch: Buffer[] = [];
  let isStarted = false;
  for await (const message of messagesOf(client, { hasStartup: true })) {
    if (!isStarted) {
      isStarted = true;
      client.write(Buffer.concat([AUTHENTICATED, READY_FOR_QUERY]));
      continue;
    }
    if (typeOf(message) === 'X') break;
    batch.push(message);
    if (!SYNC_OR_QUERY.test(typeOf(message))) continue;
    transaction ??= await server.lock();
    const { response, isIdle } = await transaction.ask(Buffer.concat(batch));
    batch = [];
    client.write(response);
    if (!isIdle) continue;
    transaction.release();
    transaction = undefined;
  }
  // The client left a transaction open: poolers then close the server connection, which rolls back.
  if (transaction) await transaction.ask(simpleQuery('ROLLBACK'));
  transaction?.release();
  client.end();
}

type Lock = {
  /** Sends messages that end with Sync or are a query. @returns everything up to ReadyForQuery. */
  ask(messages: Buffer): Promise<{ response: Buffer; isIdle: boolean }>;
  release(): void;
};

type SharedConnection = {
  /** Waits until no other client is in a transaction. */
  lock(): Promise<Lock>;
  close(): Promise<void>;
};

async function openSharedConnection(databaseUrl: string): Promise<SharedConnection> {
  const owner = new pg.Client(databaseUrl);
  owner.on('error', () => {});
  await owner.connect();
  // The pooler takes over the socket once node-postgres has authenticated it.
  const { stream } = (owner as unknown as { connection: { stream: Socket } }).connection;
  stream.removeAllListeners('data');
  const messages = messagesOf(stream, { hasStartup: false });
  let last: Promise<void> = Promise.resolve();

  async function ask(request: Buffer): Promise<{ response: Buffer; isIdle: boolean }> {
    stream.write(request);
    const response: Buffer[] = [];
    for (;;) {
      const { value } = await messages.next();
      if (!value) throw new Error("the database closed the pooler's connection");
      response.push(value);
      if (typeOf(value) === 'Z') return { response: Buffer.concat(response), isIdle: value[5] === IDLE };
    }
  }

  return {
    async lock() {
      const { promise, resolve } = Promise.withResolvers<void>();
      const before = last;
      last = promise;
      await before;
      return { ask, release: resolve };
    },
    async close() {
      const closed = once(stream, 'close');
      stream.destroy();
      await closed;
    },
  };
}

const IDLE = 'I'.charCodeAt(0);

const typeOf = (message: Buffer) => String.fromCharCode(message[0] ?? 0);

function simpleQuery(text: string): Buffer {
  const message = Buffer.from(`Q\0\0\0\0${text}\0`, 'latin1');
  message.writeUInt32BE(message.length - 1, 1);
  return message;
}

/** Reads the messages of a connection (PostgreSQL, "Message Formats"). A client's first message has no type byte. */
async function* messagesOf(
  socket: Socket,
  { hasStartup }: { hasStartup: boolean },
): AsyncGenerator<Buffer, undefined> {
  let rest = Buffer.alloc(0);
  let typeBytes = hasStartup ? 0 : 1;
  try {
    for await (const chunk of socket) {
      rest = Buffer.concat([rest, chunk]);
      for (;;) {
        const length = rest.length < 5 ? undefined : rest.readUInt32BE(typeBytes) + typeBytes;
        if (length === undefined || rest.length < length) break;
        yield rest.subarray(0, length);
        rest = rest.subarray(length);
        typeBytes = 1;
      }
    }
  } catch {
    // The connection was reset, which also closes it.
  }
  return undefined;
}
