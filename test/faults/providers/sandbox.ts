import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { SIGNATURE_HEADER, signatureOf } from '#sandbox/signature.ts';
import { startProcess } from '../processes.ts';
import { ABILITIES, type Ability, type Judge, type LedgerLine, type Provider } from './provider.ts';

const API_KEY = 'faults_api_key';
/** Signs the notifications that a case sends as the provider; the judge itself sends none. */
const NOTIFICATION_SECRET = 'faults_notification_secret';
const ANNOUNCES = /sandbox provider: http:\/\/127\.0\.0\.1:(\d+)/;

/** The simulated provider as a separate process, which writes each charge to disk before it responds. */
export const sandbox: Provider = {
  name: 'sandbox',
  // It has every feature except a dashboard for merchants.
  abilities: new Set((Object.keys(ABILITIES) as Ability[]).filter((ability) => ability !== 'dashboard')),
  connector: 'sandbox',
  timeoutMs: 1_000,
  settings: (acquirer) => `acquirer: ${acquirer}`,
  secrets: () => ({ api_key: 'FAULTS_API_KEY', notification_secret: 'FAULTS_NOTIFICATION_SECRET' }),
  environment: { FAULTS_API_KEY: API_KEY, FAULTS_NOTIFICATION_SECRET: NOTIFICATION_SECRET },
  currencies: [
    { currency: 'USD', digits: 2 },
    { currency: 'JPY', digits: 0 },
    { currency: 'KWD', digits: 3 },
    { currency: 'BRL', digits: 2 },
  ],
  closesBy: 'close',
  callOf(head) {
    if (/^POST \/v1\/by-idempotency-key\/[^/ ]+\/close /.test(head)) return 'close';
    if (/^GET \/v1\/by-idempotency-key\//.test(head)) return 'look_up';
    if (/^POST \/v1\/(captures|cancellations|refunds|completions) /.test(head)) return 'operation';
    return /^POST \/v1\/(charges|codes|verifications|wallet-)/.test(head) ? 'charge' : undefined;
  },
  async start({ checkout, ledgerUrl }): Promise<Judge> {
    const databaseUrl = await ledgerUrl();
    const judge = await startProcess({
      checkout,
      program: 'sandbox/main.ts',
      args: ['--database-url', databaseUrl, '--port', '0', '--api-key', API_KEY],
      announces: ANNOUNCES,
    });
    const url = `http://127.0.0.1:${judge.url}`;
    return {
      port: Number(judge.url),
      isAlive: judge.isAlive,
      written: async () => (await rowsOf(databaseUrl)) + judge.output(),
      ledger: () => readLedger(url),
      async agree({ id, kind }) {
        await press(url, `${kind === 'code' ? 'codes' : 'checkout'}/${id}/pay`);
        return '';
      },
      expire: ({ id }) => press(url, `codes/${id}/expire`),
      notification: notificationOf,
      // It reads its behavior from the description of each call.
      trouble: () => {},
      hasHeardOf: () => true,
      kill: judge.kill,
    };
  },
};

/** Presses a button on a payer's page. */
async function press(url: string, button: string): Promise<void> {
  const { status } = await fetch(`${url}/${button}`, { method: 'POST', redirect: 'manual' });
  if (status !== 303) throw new Error(`the provider's page responded ${status}`);
}

function notificationOf(line: LedgerLine, { isForged }: { readonly isForged: boolean }) {
  const event = {
    id: `ev_${randomUUID()}`,
    type: `${line.kind}.${line.status}`,
    created_at: new Date().toISOString(),
    data: { object: line.kind, ...line },
  };
  const body = JSON.stringify(event);
  const signature = signatureOf(body, [isForged ? randomUUID() : NOTIFICATION_SECRET], Date.now());
  return {
    header: (name: string) => (name === SIGNATURE_HEADER ? signature : undefined),
    query: '',
    body: Buffer.from(body),
  };
}

/** Returns all rows of a ledger as text. */
async function rowsOf(databaseUrl: string): Promise<string> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  const { rows } = await client
    .query('SELECT row_to_json(l) FROM sandbox.ledger l')
    .finally(() => client.end());
  return JSON.stringify(rows);
}

async function readLedger(url: string): Promise<LedgerLine[]> {
  const lines: LedgerLine[] = [];
  for (let after: string | null = ''; after !== null; ) {
    const response = await fetch(`${url}/v1/ledger?after=${after}`, {
      headers: { authorization: `Bearer ${API_KEY}` },
    });
    const page = (await response.json()) as { entries: LedgerLine[]; next: string | null };
    lines.push(...page.entries.map((entry) => ({ ...entry, isNamedById: true }) as const));
    after = page.next;
  }
  return lines;
}
