import { createHash } from 'node:crypto';
import Fastify, { type FastifyInstance } from 'fastify';
import type { Config } from '#src/config.ts';
import { sandboxProvider } from '#src/sandbox/sandbox-provider.ts';

/** The mounted sandbox provider. */
export type Sandbox = {
  /** @returns the provider's address for connectors. */
  listen(): Promise<string>;
  /** Environment variables of its connections, for those that nobody set. */
  readonly environment: Readonly<Record<string, string>>;
  close(): Promise<void>;
};

/**
 * Mounts the sandbox provider: its pages at our own address, for payers, and all of it at a door on loopback, for
 * connectors. That door needs no certificate, and is still open for payments in flight while ours drains.
 *
 * @param options.address is asked once the application listens.
 */
export async function mountSandbox(
  app: FastifyInstance,
  options: {
    readonly config: Config;
    readonly databaseUrl: string;
    readonly address: () => string;
    /** The provider's API key, where the environment gives none. */
    readonly apiKey: string;
  },
): Promise<Sandbox> {
  const { config, databaseUrl, address } = options;
  const apiKey = config.environment('SANDBOX_API_KEY') ?? options.apiKey;
  // The same in every replica that has the same API key.
  const notificationSecret =
    config.environment('SANDBOX_NOTIFICATION_SECRET') ??
    createHash('sha256').update(`notifications ${apiKey}`).digest('hex');
  const provider = {
    prefix: SANDBOX_PREFIX,
    databaseUrl,
    publicUrl: () => config.sandboxPublicUrl ?? `${address()}${SANDBOX_PREFIX}`,
    apiKeys: [apiKey],
    notificationSecrets: [notificationSecret],
  };
  const door = Fastify({ logger: false });
  await app.register(sandboxProvider, provider);
  await door.register(sandboxProvider, provider);
  return {
    // Exclusive: workers would share it, and one that drains needs its own.
    listen: async () =>
      `${await door.listen({ host: '127.0.0.1', port: 0, exclusive: true })}${SANDBOX_PREFIX}`,
    environment: { SANDBOX_API_KEY: apiKey, SANDBOX_NOTIFICATION_SECRET: notificationSecret },
    close: () => door.close(),
  };
}

const SANDBOX_PREFIX = '/sandbox';
