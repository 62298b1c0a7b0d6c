import Fastify from 'fastify';
import { sandboxProvider } from '#sandbox/sandbox-provider.ts';

const INNER_KEY = 'inner-key';

/** A sandbox provider whose API keys come and go, each with its account. */
export type KeyedSandbox = {
  /** The `base_url` of its API. */
  readonly url: string;
  /** The accounts by API key. A key that is not there is refused. */
  readonly accounts: Map<string, string>;
  /** Number of calls that were refused for their key. */
  refused(): number;
  close(): Promise<void>;
};

/** Starts the provider, with its ledger in a database. */
export async function startKeyedSandbox(databaseUrl: string): Promise<KeyedSandbox> {
  const accounts = new Map<string, string>();
  let refused = 0;
  const app = Fastify({ logger: false });
  app.addHook('onRequest', async (request) => {
    const key = (request.headers.authorization ?? '').replace('Bearer ', '');
    const account = accounts.get(key);
    if (account === undefined) {
      refused += 1;
      return;
    }
    request.headers.authorization = `Bearer ${INNER_KEY}`;
    request.headers['sandbox-account'] = account;
  });
  await app.register(sandboxProvider, {
    ...{ prefix: '/sandbox', databaseUrl, publicUrl: () => 'http://127.0.0.1:1/sandbox' },
    ...{ apiKeys: [INNER_KEY], notificationSecrets: [] },
  });
  const url = `${await app.listen({ host: '127.0.0.1', port: 0 })}/sandbox`;
  return { url, accounts, refused: () => refused, close: () => app.close() };
}
