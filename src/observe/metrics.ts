import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { addProcessMetrics } from './process-metrics.ts';

/** Metrics for Prometheus. Labels are names from closed or configured sets, never request data. */
export type Metrics = ReturnType<typeof createMetrics>;

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Creates the metrics in a separate registry, so that several servers can run in one process. */
export function createMetrics() {
  const registry = new Registry();
  addProcessMetrics(registry);
  const make = makersIn(registry);
  return {
    registry,
    ...paymentMetrics(make),
    ...openMetrics(make),
    ...neighbourMetrics(make),
    ...callMetrics(make),
  };
}

type About<Label> = { readonly name: string; readonly help: string; readonly labelNames?: readonly Label[] };
type Makers = ReturnType<typeof makersIn>;

function makersIn(registry: Registry) {
  const registers = [registry];
  return {
    counter: <Label extends string = never>(about: About<Label>) =>
      new Counter<Label>({ ...about, registers }),
    gauge: <Label extends string = never>(about: About<Label>) => new Gauge<Label>({ ...about, registers }),
    /** For values that each worker measures itself: a sum would be meaningless, so the highest value is reported. */
    highest: <Label extends string = never>(about: About<Label>) =>
      new Gauge<Label>({ ...about, registers, aggregator: 'max' }),
    histogram: <Label extends string = never>(about: About<Label>) =>
      new Histogram<Label>({ ...about, registers, buckets: SECONDS }),
  };
}

/** Metrics about payments and operations on them. */
function paymentMetrics({ counter }: Makers) {
  return {
    payments: counter({
      name: 'payments_total',
      help: 'Payments created, by category and response status. Replays are not counted.',
      labelNames: ['category', 'status'],
    }),
    operations: counter({
      name: 'payment_operations_total',
      help: 'Captures, cancels and refunds, by type and response status. Replays are not counted.',
      labelNames: ['type', 'status'],
    }),
    replays: counter({
      name: 'payment_replays_total',
      help: 'Stored responses returned to retries with the same idempotency key.',
    }),
    finishFailures: counter({
      name: 'payment_finish_failures_total',
      help: 'Failed writes of known outcomes. Each write is retried.',
    }),
    failovers: counter({
      name: 'payment_failovers_total',
      help: 'Failed attempts after which the payment failed over to another connection.',
      labelNames: ['from', 'to', 'outcome'],
    }),
  };
}

/** Metrics about unknown outcomes and the checks that resolve them. */
function openMetrics({ counter, highest }: Makers) {
  return {
    lookUps: counter({
      name: 'payment_look_ups_total',
      help: 'Checks of transactions, by connection and result.',
      labelNames: ['connection', 'result'],
    }),
    openOutcomes: highest({
      name: 'payment_open_outcomes',
      help: 'Attempts with an unknown outcome, including requests in progress. Counted every 10 to 15 s, up to 100000.',
    }),
    oldestOpenOutcome: highest({
      name: 'payment_open_outcome_oldest_seconds',
      help: 'Age of the oldest open outcome. Alert when it exceeds a few minutes.',
    }),
    openFollowUps: highest({
      name: 'payment_open_follow_ups',
      help: 'Work that continues after its call, by kind: captures, cancels and refunds with an unknown result, and payers redirected to a provider (payer). Counted every 10 to 15 s, up to 100000 of each type.',
      labelNames: ['kind'],
    }),
    oldestFollowUp: highest({
      name: 'payment_open_follow_up_oldest_seconds',
      help: 'Age of the oldest of payment_open_follow_ups, by kind. A payer may take a day; alert when an operation takes longer than the provider usually needs.',
      labelNames: ['kind'],
    }),
    unaskableOutcomes: highest({
      name: 'payment_unaskable_outcomes',
      help: 'Open outcomes that this replica cannot look up, by reason: no_connection, other_account or no_look_up. Alert above 0.',
      labelNames: ['connection', 'reason'],
    }),
  };
}

/** Metrics about providers, merchants' receivers, the catalogue and the database. */
function neighbourMetrics({ counter, highest, histogram }: Makers) {
  return {
    providerCalls: histogram({
      name: 'provider_call_seconds',
      help: 'Duration of provider calls, by connection and outcome.',
      labelNames: ['connection', 'outcome'],
    }),
    providerAlarms: counter({
      name: 'provider_alarms_total',
      help: 'Provider responses that need manual review, by connection: a different amount, currency or reference, or a second charge. The log says which.',
      labelNames: ['connection'],
    }),
    latePayments: counter({
      name: 'late_payments_total',
      help: 'Payments that were paid after they had expired, were canceled or were declined, by connection. The log names them.',
      labelNames: ['connection'],
    }),
    settledAgainstRecord: counter({
      name: 'settled_against_record_total',
      help: 'Payments that a settlement report settles although the record has them as unsuccessful or open, by connection. The log names them.',
      labelNames: ['connection'],
    }),
    settlementFetchFailures: counter({
      name: 'settlement_fetch_failures_total',
      help: 'Daily fetches of a settlement report that failed, by connection. Each is repeated an hour later.',
      labelNames: ['connection'],
    }),
    unequalTransfers: counter({
      name: 'unequal_transfers_total',
      help: 'Transfers of another amount than the payment: underpaid (the payment has expired) or overpaid, by connection. The log names the payments and the amounts.',
      labelNames: ['connection', 'alarm'],
    }),
    notifications: counter({
      name: 'provider_notifications_total',
      help: "Providers' notifications, by connection and result. On receipt: forged, ignored or about. Once processed: applied, unchanged, unmatched or unanswered.",
      labelNames: ['connection', 'result'],
    }),
    circuits: highest({
      name: 'connection_circuit',
      help: "1 for the current state of a connection's circuit breaker: CLOSED, OPEN or HALF_OPEN. Each worker has its own breakers.",
      labelNames: ['connection', 'state'],
    }),
    catalogueLoads: counter({
      name: 'catalogue_loads_total',
      help: 'Loads of the catalogue, by result. After a failed load, the previous catalogue stays in force.',
      labelNames: ['result'],
    }),
    deliveries: histogram({
      name: 'webhook_delivery_seconds',
      help: 'Duration of attempts to deliver an event to a webhook, by result: DELIVERED, or the reason for the failure.',
      labelNames: ['result'],
    }),
    clockDifference: highest({
      name: 'database_clock_difference_seconds',
      help: "Lower bound of the difference between this machine's clock and the database's, in either direction. Alert above a minute.",
    }),
    nodes: highest({
      name: 'database_node_ill',
      help: '1 for a node of a distributed database that does not respond, cannot be reached, refuses writes or may lose commits; 0 for a node that works.',
      labelNames: ['node'],
    }),
    queries: histogram({
      name: 'database_query_seconds',
      help: 'Duration of database round trips, by statement, including the wait for a connection. Statements in longer transactions are not counted.',
      labelNames: ['statement', 'result'],
    }),
  };
}

/** Metrics about calls, from the first byte to the last. */
function callMetrics({ counter, gauge, histogram }: Makers) {
  return {
    requests: histogram({
      name: 'request_seconds',
      help: 'Duration of requests, by route and HTTP status. An rpc protocol has its own status within HTTP 200.',
      labelNames: ['route', 'status'],
    }),
    refusals: counter({
      name: 'calls_refused_total',
      help: 'Refused calls, by limit. Nothing was sent for them.',
      labelNames: ['limit'],
    }),
    callsReceiving: gauge({
      name: 'calls_receiving',
      help: 'Calls whose body is still being received. They are not in flight yet.',
    }),
    callsInFlight: gauge({
      name: 'calls_in_flight',
      help: 'Calls whose work is still running, even if nobody waits for it, or whose response the client has not read yet.',
    }),
    callsAtWork: gauge({
      name: 'calls_at_work',
      help: 'Calls in flight that wait neither for a provider nor for the client to read the response, and key look-ups.',
    }),
    inFlight: gauge({
      name: 'requests_in_flight',
      help: 'Requests without a response yet.',
    }),
  };
}
