import { afterAll, beforeAll } from 'vitest';
import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import { sandboxConnector } from '#src/connectors/sandbox/connector.ts';
import { Secret } from '#src/secret.ts';
import { API_KEY, type ProviderUnderTest, startProvider } from '../../sandbox/provider-under-test.ts';

/** The simulated provider itself, without a service. */
export let provider: ProviderUnderTest;
const connections: ProviderConnection[] = [];

/** Starts the simulated provider for a file's tests, and stops it and its connections after them. */
export function onSandbox(): void {
  beforeAll(async () => {
    provider = await startProvider({ prefix: '/sandbox', publicUrl: () => 'http://shop.example/sandbox' });
  });
  afterAll(async () => {
    for (const connection of connections.splice(0)) await connection.close();
    await provider?.close();
  });
}

/** Opens a connection with these settings to the simulated provider. */
export function connect(settings: object = {}, apiKey = API_KEY): ProviderConnection {
  const connection = sandboxConnector.connect(
    { base_url: provider.origin, timeout_ms: 20_000, ...settings },
    { providerId: 'SANDBOX_ONE', secrets: { api_key: new Secret(apiKey) } },
  );
  connections.push(connection);
  return connection;
}
