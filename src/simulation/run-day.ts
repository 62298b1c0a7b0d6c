import { create } from '@bufbuild/protobuf';
import type { Catalogue } from '#gen/payments/config/catalogue_pb.js';
import type { SimulatedConnection, SimulatedDay } from '#gen/payments/config/simulation_pb.js';
import { CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import { type OpenedCatalogue, openCatalogue } from '#src/catalogue/open-catalogue.ts';
import type { PaymentAttempt } from '#src/connectors/attempt.ts';
import type { Outcome } from '#src/connectors/outcome.ts';
import { formatMoney } from '#src/money.ts';
import { openConnection } from '#src/payments/live-catalogue.ts';
import { targetsInTurn } from '#src/payments/make-attempts.ts';
import { createApprovalRates } from '#src/routing/approval-rates.ts';
import type { ChosenRoute } from '#src/routing/router.ts';
import { Secret } from '#src/secret.ts';
import { SimulationError } from './read-day.ts';
import { simulatedConnector } from './simulated-connector.ts';
import { DAY_STARTS_MS, HOUR_MS, type SyntheticPayment } from './synthetic-payments.ts';
import { inVirtualTime, type VirtualTime } from './virtual-time.ts';

/** Results of a day's payments. */
export type DayResult = {
  /** End of each payment's request, in the order in which they ended. */
  readonly ends: readonly PaymentEnd[];
  /** Number of times that a closed circuit opened. */
  readonly openings: number;
};

/** The end of a payment's request. */
export type PaymentEnd = {
  readonly payment: SyntheticPayment;
  /** Hour of the day in which the payment arrived, 0 to 23. */
  readonly hour: number;
  /** Attempts in order, of which the last one decides the outcome; none if no route took the payment. */
  readonly attempts: readonly { readonly connectionId: string; readonly outcome: Outcome['kind'] }[];
  /** Time that the payer waited. */
  readonly waitedMs: number;
  /** The providers' fees, in the payment's currency. */
  readonly cost: number;
};

/**
 * Plays a day through one catalogue. Routes, the order of the targets, failover, circuit breakers and learned approval
 * rates are the service's own; only the connections are simulated. No approval rates are known at the start.
 *
 * @param onPayment called for each payment with the number of payments so far.
 * @throws SimulationError if a payment may go to a connection that the scenario does not describe.
 */
export function runDay(
  day: SimulatedDay,
  seed: number,
  payments: readonly SyntheticPayment[],
  catalogue: Catalogue,
  onPayment: (count: number) => void = () => {},
): Promise<DayResult> {
  const byId = new Map(payments.map((payment) => [payment.id, payment]));
  const behaviours = new Map(day.connections.map((connection) => [connection.id, connection]));
  return inVirtualTime(DAY_STARTS_MS, async (time) => {
    let openings = 0;
    const ill = new Set<string>();
    const opened = openCatalogue(catalogue, {
      connectors: [simulatedConnector({ day, seed, payments: byId, time })],
      environment: () => undefined,
      variables: {},
      identityKey: new Uint8Array(),
      rates: createApprovalRates(),
      observer: {
        conditionFailed: (routeId, error) => {
          throw new SimulationError(`the condition of route ${routeId} fails: ${(error as Error).message}`);
        },
        circuitChanged: (id, state) => {
          if (state === 'CLOSED') ill.delete(id);
          else if (!ill.has(id)) openings += 1;
          if (state !== 'CLOSED') ill.add(id);
        },
        connectionRetired: () => {},
      },
      nowMs: time.now,
    });
    const ends: PaymentEnd[] = [];
    const underWay: Promise<unknown>[] = [];
    for (const [i, payment] of payments.entries()) {
      onPayment(i + 1);
      await time.until(payment.atMs);
      for (const { probeIfDue } of opened.health.values()) probeIfDue();
      const chosen = opened.router.choose(payment.facts, payment.id);
      checkTargets(chosen, behaviours);
      underWay.push(pay(opened, payment, chosen, behaviours, time).then((end) => ends.push(end)));
    }
    await Promise.all(underWay);
    await opened.close();
    return { ends, openings };
  });
}

function checkTargets(
  chosen: ChosenRoute | undefined,
  behaviours: ReadonlyMap<string, SimulatedConnection>,
): void {
  const strange = chosen?.targets.find(({ id }) => !behaviours.has(id));
  if (!chosen || !strange) return;
  throw new SimulationError(
    `payments may go to connection ${strange.id} (by route ${chosen.route.id}), which the scenario's connections do not describe`,
  );
}

/** Makes attempts as makeAttempts does, without storing them. */
async function pay(
  catalogue: OpenedCatalogue,
  payment: SyntheticPayment,
  chosen: ChosenRoute | undefined,
  behaviours: ReadonlyMap<string, SimulatedConnection>,
  time: VirtualTime,
): Promise<PaymentEnd> {
  const attempt = attemptOf(payment);
  const attempts: PaymentEnd['attempts'][number][] = [];
  let cost = 0;
  const nextTarget = chosen && targetsInTurn(chosen, catalogue.signals);
  let target = chosen?.targets[0];
  while (target) {
    const { id } = target;
    const outcome = await openConnection(catalogue, id).pay(attempt);
    catalogue.learn(id, payment.facts, outcome);
    attempts.push({ connectionId: id, outcome: outcome.kind });
    cost += costOf(outcome, payment, behaviours.get(id)?.cost);
    target = nextTarget?.(outcome);
  }
  const hour = Math.floor((payment.atMs - DAY_STARTS_MS) / HOUR_MS);
  return { payment, hour, attempts, waitedMs: time.now() - payment.atMs, cost };
}

function costOf(outcome: Outcome, { money }: SyntheticPayment, cost: SimulatedConnection['cost']): number {
  if (!cost || outcome.kind === 'not_sent') return 0;
  const share = outcome.kind === 'approved' ? (Number(formatMoney(money)) * cost.percent) / 100 : 0;
  return cost.fixed + share;
}

/** Makes an attempt with what a simulated provider or a circuit breaker looks at. */
function attemptOf({ id, money, facts }: SyntheticPayment): PaymentAttempt {
  return {
    transactionId: id,
    paymentId: id,
    money,
    description: '',
    merchantOrderId: '',
    merchantReference: '',
    country: facts.country,
    returnUrl: '',
    notificationUrl: '',
    expiresAtMs: 0,
    customerPayer: NOBODY,
    additionalData: undefined,
    taxes: undefined,
    metadata: [],
    method: {
      kind: 'card',
      card: NO_CARD,
      capture: true,
      verify: false,
      installments: 1,
      threeDSecureSetupId: undefined,
      threeDSecure: undefined,
      storedCredentials: undefined,
      softDescriptor: '',
    },
  };
}

const NOBODY = create(CustomerPayerSchema);
const NO_CARD = {
  number: new Secret(''),
  securityCode: undefined,
  holderName: '',
  expirationMonth: 12,
  expirationYear: 99,
};
