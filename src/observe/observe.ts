import type { FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import {
  Payment_Status,
  Transaction_Category,
  Transaction_Status,
  Transaction_Type,
} from '#gen/payments/v1/payment_pb.js';
import {
  type Authenticate,
  type Credentials,
  InvalidCredentialsError,
  type LimitLookUp,
  type ReadHeader,
} from '#src/api/authenticate.ts';
import type { ClientAddress } from '#src/api/client-address.ts';
import type { LimitRate } from '#src/api/rate-limit.ts';
import { CatalogueError } from '#src/catalogue/catalogue-error.ts';
import type { CatalogueObserver, OpenedCatalogue } from '#src/catalogue/open-catalogue.ts';
import { CIRCUIT_STATES } from '#src/connectors/guards/circuit.ts';
import type { PaymentObserver } from '#src/payments/create/create-payment.ts';
import type { OperationDeps } from '#src/payments/operate/claim-operation.ts';
import type { Database } from '#src/store/engine/database.ts';
import type { CardVault } from '#src/vault/card-vault.ts';
import type { DeliveryObserver } from '#src/webhooks/deliver.ts';
import type { Metrics } from './metrics.ts';
import { observeAlarm, observeMoneyAlarm } from './observe-alarm.ts';
import { countRefusal, lineOf, logWithRequest } from './observe-requests.ts';
import type { Tracing } from './tracing.ts';

/** Counts and times payments, and logs events that operators must know about. */
export function observePayments(
  metrics: Metrics,
  tracing: Tracing,
  log: Logger,
): PaymentObserver & OperationDeps['observer'] {
  return {
    async providerCall(connectionId, transactionId, call) {
      const startedMs = performance.now();
      const outcome = await tracing.span('provider call', { 'payments.connection': connectionId }, call);
      const seconds = (performance.now() - startedMs) / 1000;
      metrics.providerCalls.observe({ connection: connectionId, outcome: outcome.kind }, seconds);
      observeAlarm(metrics, log, outcome, { connectionId, transactionId });
      if (outcome.kind === 'unknown' || (outcome.kind === 'not_sent' && outcome.because !== 'circuit_open')) {
        const about = { transaction_id: transactionId, connection: connectionId };
        const because = outcome.kind === 'not_sent' ? outcome.because : outcome.kind;
        log.warn({ ...about, outcome: outcome.kind, detail: outcome.detail }, WITHOUT_RESULT[because]);
      }
      return outcome;
    },
    failedOver(from, to, { kind }) {
      metrics.failovers.inc({ from, to, outcome: kind });
      log.info({ from, to, outcome: kind }, 'payment failed over to another connection');
    },
    alarmed: (about, alarm) => observeAlarm(metrics, log, alarm, about),
    finished(payment, isLearnedLater) {
      const category = Transaction_Category[payment.transactions?.category ?? 0] ?? '';
      const status = Payment_Status[payment.status] ?? '';
      const done = { payment_id: payment.id, account_id: payment.accountId, payment_status: status };
      if (isLearnedLater) {
        log.info(done, 'outcome learned after the response');
        return;
      }
      metrics.payments.inc({ category, status });
      logWithRequest(log, done, 'payment made');
    },
    operated({ record }) {
      const type = Transaction_Type[record.transactions?.type ?? 0] ?? '';
      const status = Transaction_Status[record.transactions?.status ?? 0] ?? '';
      metrics.operations.inc({ type, status });
      const done = {
        payment_id: record.id,
        account_id: record.accountId,
        transaction_type: type,
        transaction_status: status,
        payment_status: Payment_Status[record.status],
      };
      logWithRequest(log, done, 'operation made');
    },
    replayed() {
      metrics.replays.inc();
    },
    refused() {
      countRefusal(metrics, undefined, 'on_their_way');
    },
    moneyAlarmed: (alarm, payment) => observeMoneyAlarm(metrics, log, alarm, payment),
    finishFailed(paymentId, error) {
      metrics.finishFailures.inc();
      log.error({ payment_id: paymentId, err: error }, 'the outcome of an attempt could not be written yet');
    },
  };
}

/** Messages about calls without a result. `detail` says more: an error of the network, or a status of the provider. */
const WITHOUT_RESULT = {
  unknown: 'the outcome of a provider call is unknown',
  unreachable: 'a provider could not be reached, or refuses the connection',
  turned_away: 'a provider call was refused',
  circuit_open: 'a circuit is open',
} as const;

/**
 * Wraps a vault to log each use with the number's token (PCI DSS 10.2.1.1). If a number cannot be opened, the caller
 * logs the reason.
 */
export function observeVault(vault: CardVault, log: Logger): CardVault {
  const logged = async <T>(event: string, token: string, use: Promise<T>): Promise<T> => {
    const result = await use.catch((error) => {
      log.warn({ token }, `${event} failed`);
      throw error;
    });
    log.info({ token }, event);
    return result;
  };
  return {
    seal: (number, token) => logged('card number sealed', token, vault.seal(number, token)),
    open: (sealed, token) => logged('card number opened', token, vault.open(sealed, token)),
    reseal: (sealed, token) => logged('card number resealed', token, vault.reseal(sealed, token)),
  };
}

/**
 * Wraps authentication to log failures (PCI DSS 10.2.1.4) without any key, not even the public one: a caller may have
 * sent the secret in its place.
 */
export function observeAuthentication(authenticate: Authenticate, clientAddress: ClientAddress) {
  return async (
    request: FastifyRequest,
    header: ReadHeader,
    limitLookUp: LimitLookUp,
  ): Promise<Credentials> => {
    const line = lineOf(request);
    const sent = header('public-api-key') ?? '';
    try {
      const credentials = await authenticate(header, limitLookUp);
      if (line) line.caller = callerOf(credentials.accountId, sent);
      return credentials;
    } catch (error) {
      if (error instanceof InvalidCredentialsError) {
        if (line) line.caller = callerOf(error.accountId, sent);
        request.log.warn(
          { account_id: error.accountId, remote_address: clientAddress(request) },
          'authentication failed',
        );
      }
      throw error;
    }
  };
}

/** Public keys as `npm run account` makes them; a secret begins with `sk_`. */
const PUBLIC_KEY = /^(?:[a-z0-9-]+_)?pk_\w+$/;

/**
 * Returns what the line of a refused call says about its caller. Of the public key, it has the last four characters, and
 * those only if the key is known or looks like a public key: a caller may have sent the secret in its place.
 */
function callerOf(accountId: string | undefined, publicKey: string): object {
  const isPublic = publicKey.length > SHOWN && (accountId || PUBLIC_KEY.test(publicKey));
  return {
    ...(accountId && { account_id: accountId }),
    ...(isPublic && { public_key_ends_with: publicKey.slice(-SHOWN) }),
  };
}

const SHOWN = 4;

/** Wraps the accounts' rate limit to count refused calls and log totals. */
export function observeRateLimit(metrics: Metrics, limitRate: LimitRate, clientAddress: ClientAddress) {
  return (request: FastifyRequest, caller: Credentials): void => {
    try {
      limitRate(caller, () => clientAddress(request));
    } catch (error) {
      countRefusal(metrics, request, 'rate');
      throw error;
    }
  };
}

/** Logs circuits that open and close, failing conditions, and connections removed from the catalogue. */
export function observeCatalogue(log: Logger): CatalogueObserver {
  return {
    conditionFailed(route, error) {
      log.error({ route, err: error }, 'the condition of a route failed; the route was skipped');
    },
    circuitChanged(connection, state) {
      log.warn({ connection, state }, 'circuit changed');
    },
    probeFailed(connection, problem) {
      log.warn({ connection, problem }, 'the probe of a connection with an open circuit failed');
    },
    connectionRetired(connection) {
      log.warn({ connection }, 'connection removed from the catalogue; kept for checks until the restart');
    },
  };
}

/** Counts and logs the results of reloading the catalogue. */
export function observeReloads(metrics: Metrics, log: Logger): (failure: unknown) => void {
  // Starts the counters at 0: Prometheus sees no increase in a series whose first value is 1.
  for (const result of ['ok', 'failed']) metrics.catalogueLoads.inc({ result }, 0);
  return (failure) => {
    metrics.catalogueLoads.inc({ result: failure ? 'failed' : 'ok' });
    if (failure === undefined) {
      log.info('catalogue loaded');
      return;
    }
    // The message concerns the operator's own file, and lists each fault in it.
    const problem = failure instanceof CatalogueError ? { problem: failure.message } : { err: failure };
    log.error(problem, 'the catalogue could not be loaded; the previous one stays in force');
  };
}

/** Reports which circuits are open. */
export function showHealth(metrics: Metrics, health: OpenedCatalogue['health']): void {
  metrics.circuits.reset();
  for (const [connection, { state }] of health) {
    for (const each of CIRCUIT_STATES) {
      metrics.circuits.set({ connection, state: each }, state() === each ? 1 : 0);
    }
  }
}

/** Counts and times deliveries to webhooks, and logs events that an operator or a merchant must know about. */
export function observeDeliveries(metrics: Metrics, log: Logger): DeliveryObserver {
  return {
    delivered({ accountId, webhookId }, { result, seconds }) {
      metrics.deliveries.observe({ result }, seconds);
      if (result === 'DELIVERED') return;
      log.info({ account_id: accountId, webhook_id: webhookId, result }, 'webhook did not accept an event');
    },
    turnedOff({ accountId, webhookId }) {
      log.warn(
        { account_id: accountId, webhook_id: webhookId },
        'webhook responded with 410 and was turned off',
      );
    },
    failed(error) {
      log.error({ err: error }, 'webhooks could not be sent; sending will be retried');
    },
  };
}

/** Wraps a database to time its round trips. */
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
