import { setTimeout as sleep } from 'node:timers/promises';
import { currencyDigits } from '#src/money.ts';
import { inParallel } from './in-parallel.ts';
import { judgeBooks } from './judge-books.ts';
import { judgeEvents } from './judge-events.ts';
import { getPayment, type Order, paymentOf, REQUEST_DEADLINE_MS } from './orders.ts';
import type { Process } from './processes.ts';
import type { LedgerLine } from './providers/provider.ts';
import { storedBodies } from './stored-bodies.ts';
import type { World } from './world.ts';

/** The invariants that hold after any fault, by short name. `told` collects the case's own failed expectations. */
export const INVARIANTS = {
  I1: 'at most one charge for an account and key',
  I2: 'every approval is one SUCCEEDED payment of the same amount and currency, and the reverse',
  I3: 'every payment that was answered is found, under the same id, with every transaction in its history',
  I4: 'same key: the same payment id, and the same bytes once answered',
  I5: 'a terminal state never changes',
  I6: 'no security code on disk or in a log, no card number but in the vault’s ciphertext',
  I7: 'no second provider while the first is unknown',
  I8: 'every request ends by its deadline; handles and memory return to where they were',
  I9: 'given back ≤ captured ≤ authorized, in the columns and in the ledger alike',
  I10: 'every change of a payment has its event, and every event its change',
  I11: 'what a caller is told is what is stored',
  I12: 'a payment has at most one code that can be paid or was paid, and none that can be paid after its end',
  told: 'what the case expects',
} as const;

export type Invariant = keyof typeof INVARIANTS;

/** The findings against each invariant; empty lists mean that it holds. */
export type Findings = Record<Invariant, string[]>;

/** A transaction with its payment. */
type Row = {
  readonly id: string;
  readonly account_id: string;
  readonly idempotency_key: string;
  readonly status: string;
  readonly transaction_id: string;
  readonly transaction_status: string;
  readonly amount_minor_units: string;
  readonly currency: string;
};

const ROWS = `SELECT p.id, p.account_id, p.idempotency_key, p.status,
  t.id AS transaction_id, t.status AS transaction_status, t.amount_minor_units, t.currency
  FROM payment p JOIN transaction t ON t.payment_id = p.id AND t.parent_id IS NULL ORDER BY t.created_at`;

const RETRIES_AT_ONCE = 4;
const READS = 3;

/** Waits for recovery, retries every order, and compares the ledger, the database and the responses. */
export async function judgeWorld(world: World): Promise<Findings> {
  const findings: Findings = {
    ...{ I1: [], I2: [], I3: [], I4: [], I5: [], I6: [], I7: [], I8: [], I9: [], I10: [], I11: [], I12: [] },
    told: [...world.disappointments],
  };
  const isDry = await world.drain();
  if (!isDry) findings.I2.push(`recovery did not drain: ${await world.open()}`);
  // An order that stays open never gets a response, so retrying it would only take time.
  const asked = (isDry ? world.orders : []).filter((order) => order.answers.some(mayHaveBeenTaken));
  const retries = asked.map((order) => () => world.insist(order));
  await inParallel(retries, RETRIES_AT_ONCE).catch((error: Error) => findings.I3.push(error.message));
  // By now, all calls to the provider have ended.
  if (isDry) await world.drain();
  const rows = (await world.query(ROWS)) as Row[];
  const payments = Map.groupBy(rows, ({ id }) => id);
  const ledger = await world.ledger();
  const approvals = ledger.filter(isApproved);
  judgeCharges(findings, rows, approvals);
  judgePayments(findings, payments, approvals);
  judgeCodes(findings, rows, ledger);
  judgeOrders(findings, rows, world.orders);
  findings.I7.push(...[...world.watch.doublyOpen].map((id) => `${id} had two outcomes open`));
  const inStore = await storedBodies(world);
  const answers = world.orders.map((order) => () => judgeAnswers(findings, world, order, payments, inStore));
  await inParallel(answers, RETRIES_AT_ONCE);
  findings.I5.push(...world.watch.changes);
  findings.I9.push(...(await judgeBooks(world, ledger)));
  findings.I10.push(...(await judgeEvents(world)));
  await judgeSecrets(findings, world);
  for (const [replica, handles] of world.baselines) await judgeHandles(findings, replica, handles);
  return findings;
}

/** Returns true for a charge or verification that was approved, even if it has changed since, and for a paid wallet or code. */
function isApproved({ kind, response_code, amount_captured }: LedgerLine): boolean {
  if (kind === 'charge' || kind === 'verification') return response_code === '00';
  return (kind.startsWith('wallet_') || kind === 'code') && amount_captured > 0;
}

/** Checks the codes of each payment. */
function judgeCodes(findings: Findings, rows: readonly Row[], ledger: readonly LedgerLine[]): void {
  const byTransaction = new Map(rows.map((row) => [row.transaction_id, row]));
  const held = new Map<string, number>();
  for (const { id, kind, status, idempotency_key } of ledger) {
    if (kind !== 'code' || !HELD.has(status)) continue;
    const row = byTransaction.get(idempotency_key);
    const payment = row?.id ?? id;
    held.set(payment, (held.get(payment) ?? 0) + 1);
    if (status !== 'paid' && !(row && UNDECIDED.has(row.status))) {
      findings.I12.push(`the code ${id} can be paid; its payment is ${row?.status}`);
    }
  }
  for (const [id, codes] of held) if (codes > 1) findings.I12.push(`${id} has ${codes} codes`);
}

/** The states in which a code can be paid or was paid. */
const HELD: ReadonlySet<string> = new Set(['created', 'confirming', 'paid']);

/** Returns false for a refusal, which means that nothing was committed. Other orders are retried. */
function mayHaveBeenTaken({ status }: { status: number | undefined }): boolean {
  return status === undefined || status === 201 || status === 409 || status >= 500;
}

/** Checks each of the judge's charges. */
function judgeCharges(findings: Findings, rows: readonly Row[], approvals: readonly LedgerLine[]): void {
  const byTransaction = new Map(rows.map((row) => [row.transaction_id, row]));
  const charged = new Map<string, number>();
  for (const approval of approvals) {
    const row = byTransaction.get(approval.idempotency_key);
    // Some providers do not receive the merchant's reference, which contains the account and the key.
    const key = approval.reference ?? (row ? `${row.account_id} ${row.idempotency_key}` : approval.id);
    charged.set(key, (charged.get(key) ?? 0) + 1);
    if (!row) {
      findings.I2.push(`${approval.id} was charged for no payment`);
      continue;
    }
    const same =
      row.transaction_status === 'SUCCEEDED' &&
      Number(row.amount_minor_units) === approval.amount &&
      row.currency === approval.currency;
    if (!same) {
      findings.I2.push(`${approval.id} was charged; its payment is ${row.status}, ${row.transaction_status}`);
    }
  }
  for (const [key, times] of charged) if (times > 1) findings.I1.push(`${key} was charged ${times} times`);
}

/** Checks each payment's transactions in order: only the last may be a charge or become one. */
function judgePayments(
  findings: Findings,
  payments: ReadonlyMap<string, readonly Row[]>,
  approvals: readonly LedgerLine[],
): void {
  const approved = new Set(approvals.map((approval) => approval.idempotency_key));
  for (const [id, transactions] of payments) {
    const last = transactions.at(-1);
    for (const row of transactions) {
      const isCharged = approved.has(row.transaction_id);
      if (row === last && row.transaction_status === 'SUCCEEDED' && !isCharged) {
        findings.I2.push(`${id} is SUCCEEDED and was never charged`);
      }
      if (row === last) continue;
      if (isCharged) findings.I7.push(`${id} was charged and went on`);
      if (!CAME_TO_NOTHING.has(row.transaction_status)) {
        findings.I7.push(`${id} went on from a transaction that is ${row.transaction_status}`);
      }
    }
  }
}

/** The statuses of transactions that are known to have moved no money. */
const CAME_TO_NOTHING: ReadonlySet<string> = new Set(['DECLINED', 'ERROR']);

function judgeOrders(findings: Findings, rows: readonly Row[], orders: readonly Order[]): void {
  // If several orders have one key, only the first request counts; the responses show which one that is.
  for (const order of orders) {
    const row = rows.find((one) => one.idempotency_key === order.key && one.account_id === order.accountId);
    const answered = order.answers.some((answer) => answer.status === 201);
    if (row && answered && Number(row.amount_minor_units) !== order.minorUnits) {
      findings.I2.push(`${row.id} is not over what was ordered`);
    }
    if (row && currencyDigits(row.currency) === undefined) findings.I2.push(`${row.id} has no currency`);
  }
}

async function judgeAnswers(
  findings: Findings,
  world: World,
  order: Order,
  payments: ReadonlyMap<string, readonly Row[]>,
  inStore: ReadonlyMap<string, string>,
): Promise<void> {
  for (const { tookMs } of order.answers) {
    if (tookMs >= REQUEST_DEADLINE_MS) findings.I8.push(`${order.key} waited for ${Math.round(tookMs)} ms`);
  }
  const answered = order.answers.filter(({ status }) => status === 201);
  const [first] = answered;
  if (!first) return;
  const bodies = new Set(answered.map(({ body }) => body));
  if (bodies.size > 1) findings.I4.push(`${order.key} was answered in ${bodies.size} ways`);
  const id = paymentOf(first)?.id ?? '';
  const stored = inStore.get(id);
  if ([...bodies].some((body) => body !== stored)) findings.I11.push(`${id} was told otherwise than stored`);
  const transactions = payments.get(id) ?? [];
  const [row] = transactions;
  if (!row) findings.I3.push(`${id} was answered and is not there`);
  const alive = world.replicas.find((replica) => replica.isAlive());
  let got = alive && (await getPayment(alive.url, order, id));
  // On a busy machine the database may be briefly unreachable.
  for (let reads = 1; alive && !got && reads < READS; reads++) got = await getPayment(alive.url, order, id);
  if (alive && got?.id !== id) findings.I3.push(`${id} was answered and cannot be read`);
  if (got && row && got.status !== row.status)
    findings.I5.push(`${id} reads ${got.status}, is ${row.status}`);
  if (got) {
    const own = got.transactions_history.filter((one) => one.parent_transaction_id === undefined);
    const isOperated = own.length < got.transactions_history.length;
    const shown = own.map((transaction) => `${transaction.id} ${transaction.status}`);
    const stand = transactions.map((one) => `${one.transaction_id} ${one.transaction_status}`);
    const declined = transactions.findLast((one) => one.transaction_status === 'DECLINED');
    const told = (got.status === 'DECLINED' && declined) || transactions.at(-1);
    const isWhole = `${shown}` === `${stand}` && (isOperated || got.transactions.id === told?.transaction_id);
    if (!isWhole) findings.I3.push(`${id} shows the transactions ${shown}; there are ${stand}`);
  }
  const told = paymentOf(first)?.status ?? '';
  const hasMoved = got?.transactions_history.some((one) => one.parent_transaction_id !== undefined);
  if (row && !hasMoved && !UNDECIDED.has(told) && told !== row.status) {
    findings.I5.push(`${id} was answered ${told}, is ${row.status}`);
  }
}

/** The statuses that a payment leaves without another call. */
const UNDECIDED: ReadonlySet<string> = new Set(['PENDING', 'READY_TO_PAY']);

const TABLES = [
  ...['payment', 'transaction', 'vaulted_token', 'customer', 'checkout_session'],
  ...['event', 'notification'],
];

/** Returns the content of all tables as text, with bytes as latin1, so that encoded messages stay readable. */
async function dump(world: World): Promise<string> {
  const parts: string[] = [];
  for (const table of TABLES) {
    for (const row of await world.query(`SELECT * FROM ${table}`)) {
      for (const value of Object.values(row)) {
        parts.push(Buffer.isBuffer(value) ? value.toString('latin1') : JSON.stringify(value));
      }
    }
  }
  return parts.join('\n');
}

async function judgeSecrets(findings: Findings, world: World): Promise<void> {
  const places = {
    'the database': await dump(world),
    'a log': world.replicas.map((replica) => replica.output()).join('\n'),
    'the ledger': await world.judge.written(),
  };
  for (const [place, text] of Object.entries(places)) {
    const leaked = { 'card numbers': 0, 'security codes': 0 };
    for (const { cardNumber, securityCode } of world.orders) {
      if (text.includes(cardNumber)) leaked['card numbers'] += 1;
      // A code as it appears in JSON or a log, and as it appears in an encoded message, after the field's length.
      if (text.includes(`"${securityCode}"`) || text.includes(`\u0004${securityCode}`)) {
        leaked['security codes'] += 1;
      }
    }
    for (const [what, count] of Object.entries(leaked)) {
      if (count > 0) findings.I6.push(`${count} ${what} are in ${place}`);
    }
  }
}

const MORE_HANDLES = 24;
const MAX_RSS_BYTES = 400 * 1024 * 1024;
/** Slightly longer than a socket to the provider is kept open for the next call. */
const SETTLE_MS = 35_000;

/**
 * Checks a replica's handles. It may open the pool's connections after its start and, for some seconds, sockets to the
 * provider.
 */
async function judgeHandles(findings: Findings, replica: Process, baseline: number): Promise<void> {
  if (!replica.isAlive()) return;
  const deadline = performance.now() + SETTLE_MS;
  while (replica.usage().handles > baseline + MORE_HANDLES && performance.now() < deadline) await sleep(100);
  const { handles, rssBytes } = replica.usage();
  if (handles > baseline + MORE_HANDLES) findings.I8.push(`${handles} handles, at first ${baseline}`);
  if (rssBytes > MAX_RSS_BYTES) findings.I8.push(`${Math.round(rssBytes / 1e6)} MB in use`);
}
