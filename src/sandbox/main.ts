import { parseArgs } from 'node:util';
import Fastify from 'fastify';
import { sandboxProvider } from './sandbox-provider.ts';

const USAGE = `usage: node src/sandbox/main.ts --database-url postgres://… [--port 8090] [--host 127.0.0.1]
  [--public-url http://127.0.0.1:8090] [--api-key sandbox_api_key]…`;

/** The simulated provider as a process of its own. */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      'database-url': { type: 'string' },
      host: { type: 'string', default: '127.0.0.1' },
      port: { type: 'string', default: '8090' },
      'public-url': { type: 'string' },
      'api-key': { type: 'string', multiple: true, default: ['sandbox_api_key'] },
    },
  });
  const { host } = values;
  const port = Number(values.port);
  const databaseUrl = values['database-url'];
  if (databaseUrl === undefined) throw new Error('--database-url is missing');
  if (!Number.isInteger(port) || port < 1 || port > 65_535) throw new Error('--port is no port');

  const publicUrl = values['public-url'] ?? `http://${host}:${port}`;
  const app = Fastify({ forceCloseConnections: 'idle' });
  await app.register(sandboxProvider, {
    databaseUrl,
    publicUrl: () => publicUrl,
    apiKeys: values['api-key'],
  });
  await app.listen({ host, port });
  console.log(`sandbox provider: ${publicUrl}`);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void app.close());
}

main().catch((error: Error) => {
  console.error(`${error.message}\n${USAGE}`);
  process.exitCode = 1;
});
