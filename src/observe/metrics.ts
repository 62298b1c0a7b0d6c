import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

/** Metrics for Prometheus. Labels are names from closed or configured sets, never a request's data. */
export type Metrics = ReturnType<typeof createMetrics>;

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Makes the metrics in a registry of their own, so that several servers can live in one process. */
export function createMetrics() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
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
    /** For values that each worker sees for itself: their sum would mean nothing, so the highest is reported. */
    highest: <Label extends string = never>(about: About<Label>) =>
      new Gauge<Label>({ ...about, registers, aggregator: 'max' }),
    histogram: <Label extends string = never>(about: About<Label>) =>
      new Histogram<Label>({ ...about, registers, buckets: SECONDS }),
  };
}

/** Metrics of payments and of operations on them. */
function paymentMetrics({ counter }: Makers) {
  return {
    payments: counter({
      name: 'payments_total',
      help: 'Payments made, by category and the status they were answered with. Replays are not counted again.',
      labelNames: ['category', 'status'],
    }),
    operations: counter({
      name: 'payment_operations_total',
      help: 'Captures, cancels and refunds, by type and the status they were answered with. Replays are not counted again.',
      labelNames: ['type', 'status'],
    }),
    replays: counter({
      name: 'payment_replays_total',
      help: 'Answers given again under their idempotency key.',
    }),
    finishFailures: counter({
      name: 'payment_finish_failures_total',
      help: 'Tries to write a known outcome that failed; each is tried again.',
    }),
    failovers: counter({
      name: 'payment_failovers_total',
      help: 'Attempts that came to nothing, and after which the payment went on to another connection.',
      labelNames: ['from', 'to', 'outcome'],
    }),
  };
}

/** Metrics of unknown outcomes and of how they become known. */
function openMetrics({ counter, highest }: Makers) {
  return {
    lookUps: counter({
      name: 'payment_look_ups_total',
      help: 'Look-ups of unknown outcomes, by connection and what was learned.',
      labelNames: ['connection', 'result'],
    }),
    openOutcomes: highest({
      name: 'payment_open_outcomes',
      help: 'Attempts whose outcome is not known, those of requests under way included. Counted every 10 to 15 s, up to 100000.',
    }),
    oldestOpenOutcome: highest({
      name: 'payment_open_outcome_oldest_seconds',
      help: 'For how long the oldest open outcome has been open. Alert when it grows beyond minutes.',
    }),
    openFollowUps: highest({
      name: 'payment_open_follow_ups',
      help: 'What goes on after its call, by kind: captures, cancels and refunds whose result is not known, and payers who were sent away (payer). Counted every 10 to 15 s, up to 100000 a type.',
      labelNames: ['kind'],
    }),
    oldestFollowUp: highest({
      name: 'payment_open_follow_up_oldest_seconds',
      help: 'For how long the oldest of payment_open_follow_ups has been open, by kind. A payer may take a day; alert when an operation takes longer than its provider does.',
      labelNames: ['kind'],
    }),
    unaskableOutcomes: highest({
      name: 'payment_unaskable_outcomes',
      help: 'Open outcomes that this replica cannot look up: no_connection, other_account or no_look_up. Alert above 0.',
      labelNames: ['connection', 'reason'],
    }),
  };
}

/** Metrics of providers, merchants' receivers, the catalogue and the database. */
function neighbourMetrics({ counter, highest, histogram }: Makers) {
  return {
    providerCalls: histogram({
      name: 'provider_call_seconds',
      help: 'Provider calls, by connection and what was learned.',
      labelNames: ['connection', 'outcome'],
    }),
    providerAlarms: counter({
      name: 'provider_alarms_total',
      help: "Provider's answers that an operator has to look into, by connection: about another amount, currency or reference, or a second charge. The log tells which.",
      labelNames: ['connection'],
    }),
    notifications: counter({
      name: 'provider_notifications_total',
      help: 'Notifications of providers, by connection: received as forged, ignored or about; processed as applied, unchanged, unmatched or unanswered.',
      labelNames: ['connection', 'result'],
    }),
    circuits: highest({
      name: 'connection_circuit',
      help: "1 for the state that a connection's circuit breaker is in: CLOSED, OPEN or HALF_OPEN. Workers have breakers of their own.",
      labelNames: ['connection', 'state'],
    }),
    catalogueLoads: counter({
      name: 'catalogue_loads_total',
      help: 'Times that the catalogue was loaded, by result. One that failed left the one before in force.',
      labelNames: ['result'],
    }),
    deliveries: histogram({
      name: 'webhook_delivery_seconds',
      help: 'Attempts to deliver an event to a webhook, by result: DELIVERED, or why it was not accepted.',
      labelNames: ['result'],
    }),
    clockDifference: highest({
      name: 'database_clock_difference_seconds',
      help: 'Time by which the clocks of this machine and the database are apart at least, ahead or behind. Alert above a minute.',
    }),
    queries: histogram({
      name: 'database_query_seconds',
      help: 'Database round trips, by statement, the wait for a connection included. Statements within longer transactions are not counted.',
      labelNames: ['statement', 'result'],
    }),
  };
}

/** Metrics of calls, from their first byte to their last. */
function callMetrics({ counter, gauge, histogram }: Makers) {
  return {
    requests: histogram({
      name: 'request_seconds',
      help: 'Requests, by route and HTTP status. An rpc protocol has its own status within HTTP 200.',
      labelNames: ['route', 'status'],
    }),
    refusals: counter({
      name: 'calls_refused_total',
      help: 'Calls that were not accepted, by the limit that refused them. Nothing was sent for them.',
      labelNames: ['limit'],
    }),
    callsReceiving: gauge({
      name: 'calls_receiving',
      help: 'Calls whose body is still to come. They are not in flight yet.',
    }),
    callsInFlight: gauge({
      name: 'calls_in_flight',
      help: 'Calls whose work has not ended, whoever waits for it still, or whose response the client has not read yet.',
    }),
    callsAtWork: gauge({
      name: 'calls_at_work',
      help: 'Of the calls in flight, those that wait neither for a provider nor for the client to read their response; and look-ups of keys.',
    }),
    inFlight: gauge({
      name: 'requests_in_flight',
      help: 'Requests that have no answer yet.',
    }),
  };
}
