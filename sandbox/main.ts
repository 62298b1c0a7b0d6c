import { parseArgs } from 'node:util';
import Fastify from 'fastify';
import { sandboxProvider } from './sandbox-provider.ts';

const USAGE = `Usage: node sandbox/main.ts --database-url postgres://… [--port 8090] [--host 127.0.0.1]
  [--public-url http://127.0.0.1:8090] [--api-key sandbox_api_key]…
  [--notification-url http://…] [--notification-secret …]…
Port 0 takes any free port.`;

/** Runs the simulated provider as a process. */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      help: { type: 'boolean', short: 'h', default: false },
      'database-url': { type: 'string' },
      host: { type: 'string', default: '127.0.0.1' },
      port: { type: 'string', default: '8090' },
      'public-url': { type: 'string' },
      'notification-url': { type: 'string' },
      'notification-secret': { type: 'string', multiple: true, default: [] },
      'api-key': { type: 'string', multiple: true, default: ['sandbox_api_key'] },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return;
  }
  const { host } = values;
  const port = Number(values.port);
  const databaseUrl = values['database-url'];
  if (databaseUrl === undefined) throw new Error('--database-url is required');
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new Error('--port must be a number from 0 to 65535');

  let address = '';
  const publicUrl = () => values['public-url'] ?? address;
  const app = Fastify({ forceCloseConnections: 'idle' });
  const notificationUrl = values['notification-url'];
  await app.register(sandboxProvider, {
    databaseUrl,
    publicUrl,
    apiKeys: values['api-key'],
    notificationSecrets: values['notification-secret'],
    ...(notificationUrl !== undefined && { notificationUrl }),
  });
  address = await app.listen({ host, port });
  console.log(`sandbox provider: ${publicUrl()}`);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void app.close());
}

main().catch((error: Error) => {
  console.error(`${error.message}\n${USAGE}`);
  process.exitCode = 1;
});
