import type { FastifyInstance } from 'fastify';
import type { Logger } from 'pino';
import { Payment_Status, Transaction_Category } from '../gen/payments/v1/payment_pb.js';
import type { Metrics } from './metrics.ts';
import type { PaymentObserver } from './payments/create-payment.ts';
import type { RecoveryObserver } from './payments/recover-payments.ts';
import type { Database } from './store/database.ts';
import type { Tracing } from './tracing.ts';

/** Counts and times what becomes of payments, and logs what an operator must hear of. */
export function observePayments(metrics: Metrics, tracing: Tracing, log: Logger): PaymentObserver {
  return {
    async providerCall(connectionId, call) {
      const startedMs = performance.now();
      const outcome = await tracing.span('provider call', { 'payments.connection': connectionId }, call);
      const seconds = (performance.now() - startedMs) / 1000;
      metrics.providerCalls.observe({ connection: connectionId, outcome: outcome.kind }, seconds);
      if (outcome.kind === 'unknown' || outcome.kind === 'not_sent') {
        log.warn(
          { connection: connectionId, outcome: outcome.kind, detail: outcome.detail },
          'provider did not answer',
        );
      }
      return outcome;
    },
    answered(record) {
      const category = Transaction_Category[record.transactions?.category ?? 0] ?? '';
      metrics.payments.inc({ category, status: Payment_Status[record.status] ?? '' });
    },
    replayed() {
      metrics.replays.inc();
    },
    finishFailed(paymentId, error) {
      metrics.finishFailures.inc();
      log.error({ payment_id: paymentId, err: error }, 'the outcome of a payment could not be written yet');
    },
  };
}

/** Counts what recovery learns, and shows what it has not learned yet. */
export function observeRecovery(metrics: Metrics, log: Logger): RecoveryObserver {
  return {
    lookedUp({ transactionId, connectionId, lookUps }, result) {
      metrics.lookUps.inc({ connection: connectionId, result });
      log.info(
        { transaction_id: transactionId, connection: connectionId, look_ups: lookUps, result },
        'outcome looked up',
      );
    },
    open({ open, oldestS }) {
      metrics.openOutcomes.set(open);
      metrics.oldestOpenOutcome.set(oldestS);
    },
    failed(error) {
      log.error({ err: error }, 'recovery failed; it goes on');
    },
  };
}

/** A database whose round trips are timed. */
export function observeDatabase(database: Database, metrics: Metrics, tracing: Tracing): Database {
  return {
    ...database,
    async query(statement, values) {
      const startedMs = performance.now();
      let result = 'error';
      try {
        const rows = await tracing.span(`sql ${statement.name}`, { 'db.system.name': 'postgresql' }, () =>
          database.query(statement, values),
        );
        result = 'ok';
        return rows as never;
      } finally {
        const seconds = (performance.now() - startedMs) / 1000;
        metrics.queries.observe({ statement: statement.name, result }, seconds);
      }
    },
  };
}

/** Gives each request its span, its measures and, once answered, its line in the log. */
export function observeRequests(app: FastifyInstance, metrics: Metrics, tracing: Tracing): void {
  tracing.traceRequests(app);
  app.addHook('onRequest', (request, reply, done) => {
    metrics.inFlight.inc();
    reply.header('x-request-id', request.id);
    // On the raw response: it closes also for who left before the answer, and for the rpc protocols.
    reply.raw.once('close', () => {
      const route = request.routeOptions.url ?? 'unknown';
      const status = reply.raw.statusCode;
      metrics.inFlight.dec();
      metrics.requests.observe({ route, status }, reply.elapsedTime / 1000);
      if (QUIET_ROUTES.has(route)) return;
      request.log.info(
        { method: request.method, route, status, ms: Math.round(reply.elapsedTime) },
        'request',
      );
    });
    done();
  });
}

/** What is asked for every few seconds by machines. */
const QUIET_ROUTES: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/metrics']);
