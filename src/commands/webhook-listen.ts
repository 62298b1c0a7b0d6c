import Fastify, { type FastifyRequest } from 'fastify';
import { Webhook } from 'standardwebhooks';
import { readConfig } from '#src/config.ts';
import type { Environment } from '#src/variables.ts';
import { EVENT_TYPES } from '#src/webhooks/events.ts';
import { type CommandIo, createCommand, parseArguments, runAsProcess } from './command-line.ts';

const USAGE = `Usage: npm run webhook-listen [-- options]

Listens for a webhook, checks every signature and prints the events. It registers itself with a running service, and
removes itself when it stops (Ctrl-C).

  --service <url>        the service's address (http://127.0.0.1:8080, or the port in PORT)
  --port <port>          the port to listen on at 127.0.0.1 (8090)
  --public-key <key>     the account's keys (pk_sandbox_one)
  --secret-key <key>     (sk_sandbox_one)
  --secret whsec_…       registers nothing, and verifies with this secret`;

const OPTIONS = {
  service: { type: 'string' },
  port: { type: 'string', default: '8090' },
  'public-key': { type: 'string', default: 'pk_sandbox_one' },
  'secret-key': { type: 'string', default: 'sk_sandbox_one' },
  secret: { type: 'string' },
} as const;

type Options = ReturnType<typeof readOptions>;

function readOptions(argv: readonly string[], environment?: Environment) {
  const options = parseArguments(argv, { options: OPTIONS }, environment).values;
  return { ...options, service: options.service ?? `http://127.0.0.1:${readConfig(environment).port}` };
}

/** The account's registered webhook. */
type Registered = { readonly id: string; readonly secret: string };

async function main(argv: readonly string[], { stdout, environment }: CommandIo): Promise<number> {
  const options = readOptions(argv, environment);
  const port = Number(options.port);
  let webhook: Webhook | undefined;
  const app = Fastify({ bodyLimit: 4 * 1024 * 1024 });
  app.addContentTypeParser(
    'application/json',
    { parseAs: 'string' },
    async (_request: unknown, body: string) => body,
  );
  app.post('/', async (request, reply) => {
    if (!webhook) return reply.code(503).send();
    try {
      webhook.verify(request.body as string, textHeaders(request));
    } catch {
      stdout.write('✗ refused a message with a wrong signature\n');
      return reply.code(401).send();
    }
    stdout.write(`${describe(JSON.parse(request.body as string))}\n`);
    return reply.code(204).send();
  });
  const address = await app.listen({ host: '127.0.0.1', port });

  const url = `${address}/`;
  let registered: Registered | undefined;
  try {
    if (!options.secret) {
      await removeLeftBehind(options, url);
      registered = await register(options, url);
    }
    webhook = new Webhook(options.secret ?? registered?.secret ?? '');
  } catch (error) {
    await app.close();
    throw error;
  }
  stdout.write(
    `Listening at ${url}${registered ? ` as webhook ${registered.id}` : ''}. Press Ctrl-C to stop.\n`,
  );
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, async () => {
      if (registered) await call(options, 'DELETE', `/v1/webhooks/${registered.id}`).catch(() => {});
      await app.close();
    });
  }
  return 0;
}

/** Removes the webhook that an earlier, killed run registered here: its events would be signed with another secret. */
async function removeLeftBehind(options: Options, url: string): Promise<void> {
  const response = await call(options, 'GET', '/v1/webhooks');
  const { webhooks = [] } = (await response.json()) as { readonly webhooks?: readonly Listed[] };
  const left = webhooks.filter((one) => one.url === url && one.description === DESCRIPTION);
  for (const { id } of left) await call(options, 'DELETE', `/v1/webhooks/${id}`);
}

type Listed = { readonly id: string; readonly url: string; readonly description: string };

async function register(options: Options, url: string): Promise<Registered> {
  const response = await call(options, 'POST', '/v1/webhooks', {
    url,
    events: EVENT_TYPES,
    description: DESCRIPTION,
  });
  const json = (await response.json()) as Registered & { detail?: string };
  if (response.status !== 201) throw new Error(`the service refused the webhook: ${json.detail}`);
  return json;
}

const DESCRIPTION = 'npm run webhook-listen';

async function call(options: Options, method: string, path: string, body?: object): Promise<Response> {
  try {
    return await fetch(new URL(path, options.service), {
      method,
      headers: {
        'public-api-key': options['public-key'],
        'private-secret-key': options['secret-key'],
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
    });
  } catch (cause) {
    throw new Error(`no service responds at ${options.service}: start it with npm start`, { cause });
  }
}

function textHeaders(request: FastifyRequest): Record<string, string> {
  return Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
}

type Message = {
  type_event: string;
  sequence: number;
  retry: number;
  data: {
    payment?: {
      id: string;
      status: string;
      sub_status: string;
      transactions: { type: string; status: string; amount: number };
      amount: { currency: string };
    };
  };
};

function describe({ type_event, sequence, retry, data: { payment } }: Message): string {
  const tries = retry > 0 ? `, try ${retry + 1}` : '';
  if (!payment) return `✓ ${type_event}${tries}`;
  const { type, status, amount } = payment.transactions;
  const what = `${type} ${amount} ${payment.amount.currency} ${status}`;
  return `✓ ${type_event} #${sequence}${tries}: payment ${payment.id} is ${payment.status}/${payment.sub_status} (${what})`;
}

/** Runs the command. */
export const run = createCommand(USAGE, main, (error) => `Not done: ${(error as Error).message}`);

if (import.meta.main) await runAsProcess(run);
