import { randomUUID } from 'node:crypto';
import { create } from '@bufbuild/protobuf';
import { CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import type { AttemptFacts, PaymentAttempt } from '#src/connectors/attempt.ts';
import type {
  CaptureOperation,
  LookedUp,
  LookUp,
  Outcome,
  ProviderConnection,
  Target,
} from '#src/connectors/connector.ts';
import type { Money } from '#src/money.ts';
import { Secret } from '#src/secret.ts';

/** A provider's test values: cards and currencies, with the outcomes that its documentation promises. */
export type TestValues = {
  /** ISO 4217 code, and ISO 3166-1 code of the payer's country. */
  readonly currency: string;
  readonly country: string;
  readonly approved?: TestCard;
  readonly declined?: TestCard & { readonly iso8583Code: string };
  /** The provider's payment method for a payer who is sent to a page. */
  readonly walletType?: string;
};

/** A test card; its number, or its holder's name, determines what the provider does. */
export type TestCard = {
  readonly number: string;
  readonly holderName: string;
  readonly securityCode: string;
  readonly expirationMonth: number;
  readonly expirationYear: number;
};

/** One check: a call, the expected outcome, and the actual one. */
export type Checked = {
  readonly name: string;
  readonly believed: string;
  readonly seen: string;
  readonly isAsBelieved: boolean;
};

type Check = (told: (checked: Checked) => void) => Promise<void>;

/** Amount of each payment, in the currency's minor unit. */
const AMOUNT = 1_000n;
const REDIRECT_TERM_MS = 30 * 60_000;

/**
 * Calls a provider's test environment through its connection, a dozen times at most, and reports for each call the
 * expected and the actual outcome. For an action that the provider only completes later (a capture that it has
 * received), `pending` is expected.
 */
export async function checkProvider(
  connection: ProviderConnection,
  values: TestValues,
  told: (checked: Checked) => void,
): Promise<void> {
  const checks: Check[] = [(tell) => checkProbe(connection, tell)];
  const { approved, declined } = values;
  if (approved) {
    checks.push((tell) => checkPurchase(connection, values, approved, tell));
    checks.push((tell) => checkAuthorization(connection, values, approved, tell));
    checks.push((tell) => checkUnheard(connection, values, tell));
  }
  if (declined) checks.push((tell) => checkDecline(connection, values, declined, tell));
  if (values.walletType !== undefined) checks.push((tell) => checkRedirect(connection, values, tell));
  for (const check of checks) await check(told);
}

async function checkProbe(connection: ProviderConnection, tell: (checked: Checked) => void): Promise<void> {
  const isThere = (await connection.probe?.()) ?? false;
  tell(compare('probe', ['answered'], isThere ? 'answered' : 'not answered: key, account or address'));
}

async function checkPurchase(
  connection: ProviderConnection,
  values: TestValues,
  card: TestCard,
  tell: (checked: Checked) => void,
): Promise<void> {
  const attempt = cardAttempt(values, card, true);
  const paid = await connection.pay(attempt);
  tell(compare('purchase', ['approved'], describeOutcome(paid)));
  if (paid.kind !== 'approved') return;
  const again = await connection.pay(attempt);
  const isSame = again.kind === 'approved' && again.reference === paid.reference;
  const repeat = isSame ? 'the first payment' : `${describeOutcome(again)}, another payment`;
  tell(compare('the same purchase under the same key', ['the first payment', 'unknown'], repeat));
  await checkLookUp(connection, attempt, paid, tell);
  for (const part of ['a first part', 'a second part']) {
    const refund = operationOn(attempt, paid, AMOUNT / 4n);
    const outcome = (await connection.refund?.(refund)) ?? NONE;
    tell(compare(`refund of ${part}`, ['approved', 'pending'], describeOutcome(outcome)));
  }
}

async function checkLookUp(
  connection: ProviderConnection,
  attempt: PaymentAttempt,
  paid: Outcome,
  tell: (checked: Checked) => void,
): Promise<void> {
  if (!connection.lookUp) return;
  const known = await connection.lookUp(lookUpOf(attempt, referenceOf(paid)));
  tell(compare('look-up by its reference', [paid.kind], describeOutcome(known)));
  const forgotten = await connection.lookUp(lookUpOf(attempt, undefined));
  tell(compare('look-up by our id alone', [paid.kind], describeOutcome(forgotten)));
}

async function checkAuthorization(
  connection: ProviderConnection,
  values: TestValues,
  card: TestCard,
  tell: (checked: Checked) => void,
): Promise<void> {
  if (!connection.capabilities.authorization) return;
  for (const verb of ['capture', 'cancel'] as const) {
    const attempt = cardAttempt(values, card, false);
    const authorized = await connection.pay(attempt);
    tell(compare(`authorization, to ${verb}`, ['approved'], describeOutcome(authorized)));
    if (authorized.kind !== 'approved') continue;
    const operation = operationOn(attempt, authorized, verb === 'capture' ? AMOUNT / 2n : AMOUNT);
    const outcome = (await connection[verb]?.(operation)) ?? NONE;
    const name = verb === 'capture' ? 'capture of a half' : 'cancel';
    tell(compare(name, ['approved', 'pending'], describeOutcome(outcome)));
  }
}

/** Checks a payment that was never sent: after closing it, it must count as never made. */
async function checkUnheard(
  connection: ProviderConnection,
  values: TestValues,
  tell: (checked: Checked) => void,
): Promise<void> {
  if (!connection.lookUp || !values.approved) return;
  const attempt = cardAttempt(values, values.approved, true);
  const outcome = await connection.lookUp({ ...lookUpOf(attempt, undefined), close: true });
  tell(compare('close of a purchase that was never sent', ['not_sent'], describeOutcome(outcome)));
}

async function checkDecline(
  connection: ProviderConnection,
  values: TestValues,
  card: NonNullable<TestValues['declined']>,
  tell: (checked: Checked) => void,
): Promise<void> {
  const outcome = await connection.pay(cardAttempt(values, card, true));
  tell(compare('declined card', [`declined ${card.iso8583Code}`], describeOutcome(outcome)));
}

async function checkRedirect(
  connection: ProviderConnection,
  values: TestValues,
  tell: (checked: Checked) => void,
): Promise<void> {
  const attempt: PaymentAttempt = {
    ...factsOf(values),
    method: { kind: 'wallet_redirect', type: values.walletType ?? '' },
  };
  const sent = await connection.pay(attempt);
  tell(compare('payer sent away', ['redirect'], describeOutcome(sent)));
  if (sent.kind !== 'redirect' || !connection.lookUp) return;
  const query = lookUpOf(attempt, sent.reference);
  tell(
    compare('look-up while nobody has paid', ['redirect'], describeOutcome(await connection.lookUp(query))),
  );
  const closed = await connection.lookUp({ ...query, close: true });
  // A provider that lists payments late cannot say at once that there is none.
  tell(compare('close of the redirect', ['expired', 'unknown'], describeOutcome(closed)));
}

const NONE: Outcome = { kind: 'not_sent', detail: 'the connector has no such call', because: 'turned_away' };

/** @param believed the expected kinds; a description that begins with one of them matches. */
function compare(name: string, believed: readonly string[], seen: string): Checked {
  const isAsBelieved = believed.some((one) => seen === one || seen.startsWith(`${one}:`));
  return { name, believed: believed.join(' or '), seen, isAsBelieved };
}

/** Describes an outcome in a line: its kind, and the provider's words. Outcomes contain no card data. */
function describeOutcome(outcome: Outcome): string {
  if (outcome.kind === 'not_sent' || outcome.kind === 'unknown') return `${outcome.kind}: ${outcome.detail}`;
  const { transactionId, status, responseCode, responseMessage } = outcome.providerData;
  const code = outcome.kind === 'declined' ? ` ${outcome.iso8583Code}` : '';
  const said = [transactionId, status, responseCode, responseMessage].filter((text) => text !== '');
  const url = outcome.kind === 'redirect' ? ` ${outcome.redirectUrl}` : '';
  return `${outcome.kind}${code}: ${said.join(' ')}${url}`;
}

function referenceOf(outcome: Outcome): string | undefined {
  return outcome.kind === 'not_sent' ? undefined : outcome.reference;
}

function cardAttempt(values: TestValues, card: TestCard, capture: boolean): PaymentAttempt {
  const { number, securityCode, ...open } = card;
  return {
    ...factsOf(values),
    method: {
      kind: 'card',
      card: { ...open, number: new Secret(number), securityCode: new Secret(securityCode) },
      capture,
      verify: false,
      installments: 1,
      threeDSecureSetupId: undefined,
      threeDSecure: undefined,
      storedCredentials: undefined,
      softDescriptor: '',
    },
  };
}

function factsOf({ currency, country }: TestValues): AttemptFacts {
  const paymentId = randomUUID();
  return {
    transactionId: randomUUID(),
    paymentId,
    money: { minorUnits: AMOUNT, currency },
    description: 'A try of the connection',
    merchantOrderId: `try-${paymentId.slice(0, 8)}`,
    merchantReference: `try-${paymentId.slice(0, 8)}`,
    country,
    returnUrl: 'https://example.com/return',
    notificationUrl: 'https://example.com/notifications',
    expiresAtMs: Date.now() + REDIRECT_TERM_MS,
    customerPayer: create(CustomerPayerSchema, {
      firstName: 'Ana',
      lastName: 'Gómez',
      email: 'ana@example.com',
    }),
    additionalData: undefined,
    taxes: undefined,
    metadata: [],
  };
}

function lookUpOf({ method, ...attempt }: PaymentAttempt, reference: string | undefined): LookUp {
  const { transactionId, money } = attempt;
  const of: LookedUp =
    method.kind === 'card'
      ? { kind: 'card', capture: method.capture, verify: false, softDescriptor: '', attempt }
      : { kind: method.kind, attempt };
  return { transactionId, money, reference, sentAtMs: Date.now(), close: false, of };
}

function operationOn(attempt: PaymentAttempt, paid: Outcome, minorUnits: bigint): CaptureOperation {
  const { transactionId, money } = attempt;
  const part: Money = { minorUnits, currency: money.currency };
  const payment: Target = { transactionId, reference: referenceOf(paid), money };
  return {
    transactionId: randomUUID(),
    money: part,
    isWhole: minorUnits === money.minorUnits,
    isFinal: true,
    merchantReference: attempt.merchantReference,
    description: '',
    reason: 'REQUESTED_BY_CUSTOMER',
    payment,
    target: payment,
  };
}
