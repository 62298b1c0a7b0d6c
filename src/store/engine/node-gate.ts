import type { Logger } from 'pino';
import { repeat } from '#src/repeat.ts';
import { createQueue, type Queue, type Release } from '#src/slots.ts';
import type { Database, Statement } from './database.ts';
import { DatabaseUnavailableError, NodeIllError } from './database-error.ts';
import { scopeOf } from './statement-scope.ts';

/** The nodes of a distributed database, as a gate asks about them. */
export type NodeSource = {
  /** Lists the nodes that store accounts, by name. */
  list(): Promise<readonly string[]>;
  /** Finds the node that stores an account; undefined if that is not known. */
  nodeOf(accountId: string): Promise<string | undefined>;
  /** Asks whether a node can store a payment safely. @returns what is wrong; undefined if nothing is. */
  ask(node: string): Promise<string | undefined>;
};

/** Settings of a gate. */
export type GateOptions = {
  /** Size of the database's connection pool. */
  readonly maxConnections: number;
  readonly log: Pick<Logger, 'warn' | 'info'>;
  readonly timing?: GateTiming;
};

/** A gate's times, in milliseconds. */
export type GateTiming = {
  /** Interval at which the gate looks at running statements. */
  readonly lookEveryMs: number;
  /** Age from which a statement makes the gate ask its node. If the node answers, the statement is merely slow. */
  readonly suspectAfterMs: number;
  /** Interval at which a node is asked: one that works, one that is suspected, and one that is ill. */
  readonly askEveryMs: { readonly well: number; readonly suspected: number; readonly ill: number };
  /** Longest wait for a connection while other statements of the same node hold its share. */
  readonly waitMs: number;
};

// A node that hangs is found ill 1.75 s later at most, if `ask` takes a second to give up.
const TIMING: GateTiming = {
  lookEveryMs: 250,
  suspectAfterMs: 250,
  askEveryMs: { well: 5_000, suspected: 500, ill: 1_000 },
  waitMs: 1_500,
};

/** A distributed database of which an ill node harms only its own accounts. */
export type NodeGate = {
  readonly database: Database;
  /** Stops asking the nodes. */
  stop(): Promise<void>;
};

/** A running statement or transaction. */
type Running = {
  readonly startedMs: number;
  readonly abort: AbortController;
  /** The node that it needs; undefined if it needs several, or none yet. */
  node: string | undefined;
};

/** Knowledge about a node. */
type Known = { ill: string | undefined; isBeingAsked: boolean; askedMs: number };

/** Lanes of the statements that need several nodes, and of transactions. The other lanes are nodes. */
const SEVERAL = 'several nodes';
const TRANSACTIONS = 'transactions';

/**
 * Guards a distributed database against nodes that hang. A node is ill if it does not answer the gate's question, which
 * is asked regularly, and soon after a statement takes long. While a node is ill, the statements that need it are refused
 * before they are sent, and those that were waiting for it are given up, so that they do not hold the connections
 * that the other nodes' accounts need. Until it is found ill, it holds a share of them.
 */
export function createNodeGate(
  database: Database,
  nodes: NodeSource,
  { maxConnections, log, timing = TIMING }: GateOptions,
): NodeGate {
  const known = new Map<string, Known>();
  const running = new Set<Running>();
  const lanes = createLanes(maxConnections, timing.waitMs);

  /** @param node the node that a statement needs; undefined for several. */
  function requireWell(node: string | undefined): void {
    for (const [name, { ill }] of known) {
      if (ill === undefined || (node !== undefined && node !== name)) continue;
      throw new NodeIllError(name, ill);
    }
  }

  async function run<T>(
    node: string | undefined,
    lane: string,
    work: (it: Running) => Promise<T>,
  ): Promise<T> {
    const leave = await lanes.enter(lane);
    const it: Running = { startedMs: performance.now(), abort: new AbortController(), node };
    try {
      if (lane !== TRANSACTIONS) requireWell(node);
      running.add(it);
      return await work(it);
    } finally {
      running.delete(it);
      leave();
    }
  }

  /** @returns the node of a statement's account; undefined if it needs several, null if it needs none. */
  async function nodeFor(text: string, values: readonly unknown[] = []): Promise<string | undefined | null> {
    const scope = scopeOf(text);
    if (scope === 'coordinator') return null;
    const given = scope === 'nodes' ? undefined : values[scope.accountAt];
    if (typeof given === 'string') return nodes.nodeOf(given);
    const found = new Set(await Promise.all(Array.isArray(given) ? given.map(nodes.nodeOf) : []));
    return found.size === 1 ? [...found][0] : undefined;
  }

  const guarded: Database = {
    ...database,
    nodes: () =>
      [...known].map(([node, { ill }]) => ({ node, ill })).sort((a, b) => (a.node < b.node ? -1 : 1)),
    async query(statement: Statement, values?: readonly unknown[]) {
      const node = await nodeFor(statement.text, values);
      if (node === null) return database.query(statement, values);
      requireWell(node);
      return run(node, node ?? SEVERAL, ({ abort }) => database.query(statement, values, abort.signal));
    },
    transaction(work, timeoutMs) {
      return run(undefined, TRANSACTIONS, (it) =>
        database.transaction(
          (send) =>
            work(async (text, values) => {
              const node = await nodeFor(text, values);
              if (node !== null) requireWell(node);
              if (node) it.node = node;
              return send(text, values);
            }),
          timeoutMs,
          it.abort.signal,
        ),
      );
    },
  };

  async function ask(node: string, it: Known): Promise<void> {
    it.isBeingAsked = true;
    const ill = await nodes.ask(node).catch(() => it.ill);
    it.isBeingAsked = false;
    it.askedMs = performance.now();
    if (ill === it.ill) return;
    it.ill = ill;
    if (ill === undefined) {
      log.info({ node }, 'a database node works again');
      return;
    }
    log.warn({ node, reason: ill }, "a database node is ill; its accounts' calls are refused");
    for (const one of running) {
      if (one.node === undefined || one.node === node) one.abort.abort();
    }
  }

  /** Returns the nodes that slow statements need; undefined stands for any. */
  function suspects(nowMs: number): ReadonlySet<string | undefined> {
    const slow = [...running].filter(({ startedMs }) => nowMs - startedMs >= timing.suspectAfterMs);
    return new Set(slow.map(({ node }) => node));
  }

  let listedMs = Number.NEGATIVE_INFINITY;
  async function look(): Promise<void> {
    const nowMs = performance.now();
    const { well, suspected, ill } = timing.askEveryMs;
    if (nowMs - listedMs > well) {
      listedMs = nowMs;
      const names = await nodes.list();
      for (const name of known.keys()) if (!names.includes(name)) known.delete(name);
      for (const name of names) {
        if (!known.has(name)) known.set(name, { ill: undefined, isBeingAsked: false, askedMs: 0 });
      }
    }
    const slow = suspects(nowMs);
    for (const [node, it] of known) {
      const isSuspected = slow.has(node) || slow.has(undefined);
      const everyMs = it.ill !== undefined ? ill : isSuspected ? suspected : well;
      if (!it.isBeingAsked && nowMs - it.askedMs >= everyMs) void ask(node, it);
    }
  }

  // A list that cannot be read changes nothing: the statements fail for the same reason.
  const looking = repeat(look, { intervalMs: timing.lookEveryMs, jitter: 0, onError: () => {} });
  return { database: guarded, stop: looking.stop };
}

/** Makes statements queue for their lane's share of the connections. */
function createLanes(maxConnections: number, waitMs: number) {
  const shareOf = (lane: string) => {
    const part = lane === SEVERAL ? 8 : lane === TRANSACTIONS ? 4 : 2;
    return Math.max(1, Math.floor(maxConnections / part));
  };
  const lanes = new Map<string, Queue>();

  /** @returns the function that ends the stay. @throws DatabaseUnavailableError if the wait is too long. */
  async function enter(lane: string): Promise<Release> {
    const leave = await lanes.getOrInsertComputed(lane, () => createQueue(shareOf(lane))).enter(waitMs);
    if (!leave) throw new DatabaseUnavailableError(new Error(`all connections for ${lane} are in use`));
    return leave;
  }
  return { enter };
}
