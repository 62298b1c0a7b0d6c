import { create } from '@bufbuild/protobuf';
import {
  type SimulatedConnection,
  SimulatedConnectionSchema,
  type SimulatedDay,
  type SimulatedRates,
} from '#gen/payments/config/simulation_pb.js';
import { ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import { CARDS_ONLY } from '#src/connectors/capabilities.ts';
import type { Connector, ProviderConnection } from '#src/connectors/connector.ts';
import type { Outcome } from '#src/connectors/outcome.ts';
import { drawNumbers } from './draws.ts';
import { DAY_STARTS_MS, HOUR_MS, type SyntheticPayment } from './synthetic-payments.ts';
import type { VirtualTime } from './virtual-time.ts';

/** Name of the connector of all connections in a simulation. */
export const SIMULATED = 'simulated';

type Part = {
  readonly day: SimulatedDay;
  readonly seed: number;
  /** Payments of the day, by id. */
  readonly payments: ReadonlyMap<string, SyntheticPayment>;
  readonly time: VirtualTime;
};

/** Connector to providers that behave as a scenario says. Its setting `connection` is the id of one of them. */
export function simulatedConnector(part: Part): Connector {
  return {
    name: SIMULATED,
    connect: ({ connection: id }) => {
      const behaviour = part.day.connections.find((connection) => connection.id === id);
      // A catalogue may have connections that no payment of the day reaches.
      return connect(behaviour ?? create(SimulatedConnectionSchema, {}), part);
    },
  };
}

function connect(behaviour: SimulatedConnection, { seed, payments, time }: Part): ProviderConnection {
  const { id, latencyMs = 300, timeoutMs = 10_000 } = behaviour;
  const wait = (ms: number) => time.until(time.now() + ms);
  return {
    identity: id,
    async pay({ paymentId }) {
      const payment = payments.get(paymentId);
      if (!payment) throw new Error(`there is no payment ${paymentId}`);
      const outcome = outcomeOf(payment, id, ratesAt(behaviour, time.now(), payment.facts));
      await wait(outcome.kind === 'unknown' ? timeoutMs : latencyMs);
      return outcome;
    },
    deadlineMs: timeoutMs,
    capabilities: CARDS_ONLY,
    capture: undefined,
    cancel: undefined,
    refund: undefined,
    complete: undefined,
    lookUp: undefined,
    readNotification: undefined,
    async probe() {
      const { notSentPercent = 0, unknownPercent = 0 } = ratesAt(behaviour, time.now(), ANY_CARD);
      const [reach = 0] = drawNumbers(`${seed}/probe/${id}/${time.now()}`);
      const hangs = reach * 100 < unknownPercent;
      await wait(hangs ? timeoutMs : latencyMs);
      return reach * 100 >= unknownPercent + notSentPercent;
    },
    close: async () => {},
  };
}

const ANY_CARD = { cardBrand: '', issuerCountry: '' };

/**
 * Decides a payment's outcome at a connection by two draws, one for reaching it and one for the approval. Both depend on
 * payment and connection alone, not on the strategy or the time.
 */
export function outcomeOf(payment: SyntheticPayment, connectionId: string, rates: SimulatedRates): Outcome {
  const [reach = 0, ownLuck = 0] = drawNumbers(`${payment.id}/${connectionId}`);
  const { notSentPercent = 0, unknownPercent = 0, approvalPercent = 0 } = rates;
  if (reach * 100 < unknownPercent) return TIMED_OUT;
  if (reach * 100 < unknownPercent + notSentPercent) return NOT_REACHED;
  if ((payment.sharedLuck ?? ownLuck) * 100 < approvalPercent) return APPROVED;
  const hardPercent = rates.hardDeclinePercent ?? payment.cards.hardDeclinePercent;
  return payment.hardness * 100 < hardPercent ? HARD_DECLINE : SOFT_DECLINE;
}

/** Returns the rates for a card: an incident's, else the card's, else the connection's. */
function ratesAt(
  { rates, cards, incidents }: SimulatedConnection,
  atMs: number,
  card: { readonly cardBrand: string; readonly issuerCountry: string },
): SimulatedRates {
  if (!rates) throw new Error('this connection is in no scenario');
  const hour = (atMs - DAY_STARTS_MS) / HOUR_MS;
  const others = [
    ...cards,
    ...incidents.filter(({ fromHour, toHour }) => fromHour <= hour && hour < toHour),
  ].filter(
    ({ brand, issuerCountry }) =>
      (brand === '' || brand === card.cardBrand) &&
      (issuerCountry === '' || issuerCountry === card.issuerCountry),
  );
  // A rate that is not set is not a property of its message, so the spread keeps the one before.
  return Object.assign({}, rates, ...others.map((other) => other.rates));
}

const providerData = create(ProviderDataSchema);
const APPROVED: Outcome = {
  kind: 'approved',
  providerData,
  authorizationCode: '',
  retrievalReferenceNumber: '',
};
/** Do not honor. */
const SOFT_DECLINE: Outcome = { kind: 'declined', providerData, iso8583Code: '05' };
/** Reported lost. */
const HARD_DECLINE: Outcome = { kind: 'declined', providerData, iso8583Code: '41' };
const NOT_REACHED: Outcome = { kind: 'not_sent', detail: 'simulated', because: 'unreachable' };
const TIMED_OUT: Outcome = { kind: 'unknown', detail: 'simulated', providerData: undefined };
