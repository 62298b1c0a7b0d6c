import { create } from '@bufbuild/protobuf';
import { type ProviderData, ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import { alarmingOutcome } from '../kit/provider-answer.ts';
import type { PaymentAttempt } from '../port/attempt.ts';
import type { NotificationReading, ProviderConnection } from '../port/connector.ts';
import { type Outcome, payersPage, type ReportedCard } from '../port/outcome.ts';
import { aroundCalls, type CallArgument } from './provider-calls.ts';
import { createRedactor, type Redactor } from './redact-card-data.ts';

/**
 * Wraps a connection so that its outcomes contain no card data, whatever the provider sent and the connector copied:
 * neither the attempt's own card or wallet's token nor anything that looks like another card. Every connection is
 * wrapped, so that no connector has to remember to do it. See `createRedactor` for the rules.
 */
export function redactOutcomes(connection: ProviderConnection): ProviderConnection {
  const redacted = aroundCalls(connection, async (_name, argument, call) =>
    redactOutcome(await call(), redactorFor(argument), !isCardLookUp(argument)),
  );
  const { readNotification } = connection;
  if (!readNotification) return redacted;
  return {
    ...redacted,
    readNotification: async (...notification) => redactReading(await readNotification(...notification)),
  };
}

/** Creates the redactor for a call: only an attempt has a card, or the token of a wallet. */
function redactorFor(argument: CallArgument | PaymentAttempt): Redactor {
  if (!('method' in argument)) return createRedactor();
  const { method } = argument;
  if (method.by === 'card') return createRedactor(method.card);
  return method.by === 'wallet_token' ? createRedactor(undefined, method.token) : createRedactor();
}

/** Returns true for the look-up of a payment by card, whose card the call does not have. */
function isCardLookUp(argument: CallArgument): boolean {
  return 'of' in argument && argument.of.kind === 'CARD';
}

function redactReading(reading: NotificationReading): NotificationReading {
  if (reading.kind !== 'about') return reading;
  const redactor = createRedactor();
  const subjects = reading.subjects.map(({ signed, ...subject }) =>
    signed
      ? { ...subject, signed: { ...signed, outcome: redactOutcome(signed.outcome, redactor, false) } }
      : subject,
  );
  return { ...reading, subjects };
}

/** Fields of an outcome that must stay unchanged for later use, even if they happen to look like a card number. */
const IDENTIFIERS: ReadonlySet<string> = new Set([
  ...['reference', 'providerPaymentId', 'networkTransactionId', 'enrolledToken'],
]);

/**
 * Returns the outcome without card data; a redirect to a URL that contains card data becomes `unknown`.
 *
 * @param isCardKnown true if the redactor has the card and token of the payment, if any. Then a URL may contain the
 *   provider's own number that happens to look like another card's: without the URL, the payer could not pay.
 */
function redactOutcome(outcome: Outcome, redactor: Redactor, isCardKnown: boolean): Outcome {
  const shown = withEach(outcome, (name, value) => {
    if (name === 'providerData') return value && redactProviderData(value as ProviderData, redactor);
    if (name === 'card') return redactCard(value as ReportedCard, redactor);
    if (typeof value !== 'string') return value;
    return IDENTIFIERS.has(name) ? redactor.identifier(value) : redactor.text(value);
  });
  const page = payersPage(shown);
  if (isCardKnown ? redactor.identifier(page) === page : redactor.isClean(page)) return shown;
  const providerData = shown.kind === 'not_sent' ? undefined : shown.providerData;
  return alarmingOutcome("the provider's redirect contains card data", providerData);
}

/** Redacts the card behind a wallet's token, of which a provider reports short texts and numbers. */
function redactCard(card: ReportedCard, redactor: Redactor): ReportedCard {
  return withEach(card, (_name, value) => (typeof value === 'string' ? redactor.text(value) : value));
}

/** Redacts a provider's data: every field is text except the raw response. */
function redactProviderData(data: ProviderData, redactor: Redactor): ProviderData {
  const { $typeName, $unknown, rawResponse, ...texts } = data;
  return create(ProviderDataSchema, {
    ...withEach(texts, (_name, text) => (typeof text === 'string' ? redactor.text(text) : text)),
    ...(rawResponse && { rawResponse: redactor.json(rawResponse) }),
  });
}

/**
 * Returns an object with the result of `map` for each property. It has the shape of the object that it copies, while
 * `Object.fromEntries` builds a dictionary, at ten times the cost.
 */
function withEach<T extends object>(object: T, map: (name: string, value: unknown) => unknown): T {
  const copy = { ...object } as Record<string, unknown>;
  for (const name in copy) copy[name] = map(name, copy[name]);
  return copy as T;
}
