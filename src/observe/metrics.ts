import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

/** Metrics for Prometheus. Labels are names from closed or configured sets, never a request's data. */
export type Metrics = ReturnType<typeof createMetrics>;

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** For values that each worker sees for itself: their sum would mean nothing, so the highest is reported. */
const OF_ALL = 'max';

/** Makes the metrics in a registry of their own, so that several servers can live in one process. */
export function createMetrics() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  return {
    registry,
    ...paymentMetrics(registers),
    ...openMetrics(registers),
    ...neighbourMetrics(registers),
    ...callMetrics(registers),
  };
}

/** Metrics of payments and of operations on them. */
function paymentMetrics(registers: Registry[]) {
  return {
    payments: new Counter({
      name: 'payments_total',
      help: 'Payments made, by category and the status they were answered with. Replays are not counted again.',
      labelNames: ['category', 'status'] as const,
      registers,
    }),
    operations: new Counter({
      name: 'payment_operations_total',
      help: 'Captures, cancels and refunds, by type and the status they were answered with. Replays are not counted again.',
      labelNames: ['type', 'status'] as const,
      registers,
    }),
    replays: new Counter({
      name: 'payment_replays_total',
      help: 'Answers given again under their idempotency key.',
      registers,
    }),
    finishFailures: new Counter({
      name: 'payment_finish_failures_total',
      help: 'Tries to write a known outcome that failed; each is tried again.',
      registers,
    }),
    failovers: new Counter({
      name: 'payment_failovers_total',
      help: 'Attempts that came to nothing, and after which the payment went on to another connection.',
      labelNames: ['from', 'to', 'outcome'] as const,
      registers,
    }),
  };
}

/** Metrics of unknown outcomes and of how they become known. */
function openMetrics(registers: Registry[]) {
  return {
    lookUps: new Counter({
      name: 'payment_look_ups_total',
      help: 'Look-ups of unknown outcomes, by connection and what was learned.',
      labelNames: ['connection', 'result'] as const,
      registers,
    }),
    openOutcomes: new Gauge({
      name: 'payment_open_outcomes',
      aggregator: OF_ALL,
      help: 'Attempts whose outcome is not known, those of requests under way included. Counted every 10 to 15 s, up to 100000.',
      registers,
    }),
    oldestOpenOutcome: new Gauge({
      name: 'payment_open_outcome_oldest_seconds',
      aggregator: OF_ALL,
      help: 'For how long the oldest open outcome has been open. Alert when it grows beyond minutes.',
      registers,
    }),
    openFollowUps: new Gauge({
      name: 'payment_open_follow_ups',
      aggregator: OF_ALL,
      help: 'What goes on after its call, by kind: captures, cancels and refunds whose result is not known, and payers who were sent away (payer). Counted every 10 to 15 s, up to 100000 a type.',
      labelNames: ['kind'] as const,
      registers,
    }),
    oldestFollowUp: new Gauge({
      name: 'payment_open_follow_up_oldest_seconds',
      aggregator: OF_ALL,
      help: 'For how long the oldest of payment_open_follow_ups has been open, by kind. A payer may take a day; alert when an operation takes longer than its provider does.',
      labelNames: ['kind'] as const,
      registers,
    }),
    unaskableOutcomes: new Gauge({
      name: 'payment_unaskable_outcomes',
      aggregator: OF_ALL,
      help: 'Open outcomes that this replica cannot look up: no_connection, other_account or no_look_up. Alert above 0.',
      labelNames: ['connection', 'reason'] as const,
      registers,
    }),
  };
}

/** Metrics of providers, merchants' receivers, the catalogue and the database. */
function neighbourMetrics(registers: Registry[]) {
  return {
    providerCalls: new Histogram({
      name: 'provider_call_seconds',
      help: 'Provider calls, by connection and what was learned.',
      labelNames: ['connection', 'outcome'] as const,
      buckets: SECONDS,
      registers,
    }),
    providerAlarms: new Counter({
      name: 'provider_alarms_total',
      help: "Provider's answers that an operator has to look into, by connection: about another amount, currency or reference, or a second charge. The log tells which.",
      labelNames: ['connection'] as const,
      registers,
    }),
    notifications: new Counter({
      name: 'provider_notifications_total',
      help: 'Notifications of providers, by connection: received as forged, ignored or about; processed as applied, unchanged, unmatched or unheard.',
      labelNames: ['connection', 'result'] as const,
      registers,
    }),
    circuits: new Gauge({
      name: 'connection_circuit',
      aggregator: OF_ALL,
      help: "1 for the state that a connection's circuit breaker is in: CLOSED, OPEN or HALF_OPEN. Workers have breakers of their own.",
      labelNames: ['connection', 'state'] as const,
      registers,
    }),
    catalogueLoads: new Counter({
      name: 'catalogue_loads_total',
      help: 'Times that the catalogue was loaded, by result. One that failed left the one before in force.',
      labelNames: ['result'] as const,
      registers,
    }),
    deliveries: new Histogram({
      name: 'webhook_delivery_seconds',
      help: 'Attempts to deliver an event to a webhook, by result: DELIVERED, or why it was not accepted.',
      labelNames: ['result'] as const,
      buckets: SECONDS,
      registers,
    }),
    queries: new Histogram({
      name: 'database_query_seconds',
      help: 'Database round trips, by statement, the wait for a connection included. Statements within longer transactions are not counted.',
      labelNames: ['statement', 'result'] as const,
      buckets: SECONDS,
      registers,
    }),
  };
}

/** Metrics of calls, from their first byte to their last. */
function callMetrics(registers: Registry[]) {
  return {
    requests: new Histogram({
      name: 'request_seconds',
      help: 'Requests, by route and HTTP status. An rpc protocol has its own status within HTTP 200.',
      labelNames: ['route', 'status'] as const,
      buckets: SECONDS,
      registers,
    }),
    refusals: new Counter({
      name: 'calls_refused_total',
      help: 'Calls that were not accepted, by the limit that refused them. Nothing was sent for them.',
      labelNames: ['limit'] as const,
      registers,
    }),
    callsReceiving: new Gauge({
      name: 'calls_receiving',
      help: 'Calls whose body is still to come. They are not in flight yet.',
      registers,
    }),
    callsInFlight: new Gauge({
      name: 'calls_in_flight',
      help: 'Calls whose work has not ended, whoever waits for it still, or whose response the client has not read yet.',
      registers,
    }),
    callsAtWork: new Gauge({
      name: 'calls_at_work',
      help: 'Of the calls in flight, those that wait neither for a provider nor for the client to read their response; and look-ups of keys.',
      registers,
    }),
    inFlight: new Gauge({
      name: 'requests_in_flight',
      help: 'Requests that have no answer yet.',
      registers,
    }),
  };
}
