import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createCommand, readArguments, runAsProcess } from '#src/commands/command-line.ts';
import { CHECKOUT_DIR, readConfig } from '#src/config.ts';
import { SANDBOX_ACCOUNT } from '#src/server/sandbox-fixtures.ts';
import { createDemoShop } from './demo-shop.ts';

const USAGE = `Usage: npm run demo [-- options]

A tiny shop whose carts are paid on the checkout page, in the sandbox. If no service is running, it starts one, and
stops it on exit (Ctrl-C).

  --service <url>        the service (http://127.0.0.1:8080, or the port that PORT names)
  --port <port>          where the shop listens on 127.0.0.1 (8081)
  --account <id>         the account and its keys (the sandbox's account one)
  --public-key <key>     (pk_sandbox_one)
  --secret-key <key>     (sk_sandbox_one)`;

const OPTIONS = {
  service: { type: 'string' },
  port: { type: 'string', default: '8081' },
  account: { type: 'string', default: SANDBOX_ACCOUNT.id },
  'public-key': { type: 'string', default: 'pk_sandbox_one' },
  'secret-key': { type: 'string', default: 'sk_sandbox_one' },
} as const;

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

async function main(): Promise<number> {
  const options = readArguments(USAGE, { options: OPTIONS }).values;
  const own = `http://127.0.0.1:${readConfig().port}`;
  const service = new URL(options.service ?? own).origin;
  const started = (await isReady(service)) ? undefined : await startService(service, own);
  const shop = createDemoShop({
    service,
    accountId: options.account,
    publicKey: options['public-key'],
    secretKey: options['secret-key'],
  });
  for (const signal of SIGNALS) process.once(signal, () => shop.close());
  started?.once('exit', () => shop.close());
  try {
    const address = await shop.listen({ host: '127.0.0.1', port: Number(options.port) });
    console.log(`The shop is open: ${address}/   (the service: ${service}; Ctrl-C stops it)`);
    return 0;
  } catch (error) {
    started?.kill('SIGTERM');
    throw error;
  }
}

async function isReady(service: string): Promise<boolean> {
  try {
    return (await fetch(`${service}/readyz`)).ok;
  } catch {
    return false;
  }
}

/** Starts the service with this process's settings, and waits until it accepts calls. The log is not shown. */
async function startService(service: string, own: string): Promise<ChildProcess> {
  if (service !== own) throw new Error(`no service responds at ${service}`);
  const child = spawn(process.execPath, [join(CHECKOUT_DIR, 'src/main.ts')], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  // Registered first: otherwise a signal during the start would leave the service running.
  for (const signal of SIGNALS) process.once(signal, () => child.kill('SIGTERM'));
  console.log('Starting the service…');
  const ended = once(child, 'exit').then(() => {
    throw new Error('the service did not start: run npm start to see why');
  });
  const ready = (async () => {
    while (!(await isReady(service))) await sleep(200);
    return child;
  })();
  return Promise.race([ready, ended]);
}

await runAsProcess(createCommand(USAGE, main, (error) => `Failed: ${(error as Error).message}`));
