import { createHash } from 'node:crypto';
import Fastify, { type FastifyInstance } from 'fastify';
import { sandboxProvider } from '#sandbox/sandbox-provider.ts';
import type { Config } from '#src/config.ts';

/** The mounted sandbox provider. */
export type Sandbox = {
  /** Starts listening. @returns the provider's URL for connectors. */
  listen(): Promise<string>;
  /** Default values for the environment variables that its connections use. */
  readonly environment: Readonly<Record<string, string>>;
  close(): Promise<void>;
};

/**
 * Mounts the sandbox provider: the pages for payers at our own address, and the whole provider on a loopback port for
 * connectors. That port needs no certificate, and stays open for payments in flight while our own address drains.
 *
 * @param options.address called only once the application listens.
 */
export async function mountSandbox(
  app: FastifyInstance,
  options: {
    readonly config: Config;
    readonly databaseUrl: string;
    readonly address: () => string;
    /** The provider's API key, unless the environment sets one. */
    readonly apiKey: string;
  },
): Promise<Sandbox> {
  const { config, databaseUrl, address } = options;
  const apiKey = config.environment('SANDBOX_API_KEY') ?? options.apiKey;
  // Replicas with the same API key derive the same secret.
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
    // Exclusive: workers would otherwise share the port, but each needs its own while it drains.
    listen: async () =>
      `${await door.listen({ host: '127.0.0.1', port: 0, exclusive: true })}${SANDBOX_PREFIX}`,
    environment: { SANDBOX_API_KEY: apiKey, SANDBOX_NOTIFICATION_SECRET: notificationSecret },
    close: () => door.close(),
  };
}

const SANDBOX_PREFIX = '/sandbox';
