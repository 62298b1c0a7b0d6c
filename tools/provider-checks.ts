import { randomUUID } from 'node:crypto';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import { type AttemptFacts, chargesCard, kindOf, type PaymentAttempt } from '#src/connectors/port/attempt.ts';
import type { LocalMethod } from '#src/connectors/port/capabilities.ts';
import type {
  CaptureOperation,
  LookedUp,
  LookUp,
  ProviderConnection,
  Target,
} from '#src/connectors/port/connector.ts';
import { type Outcome, payersPage } from '#src/connectors/port/outcome.ts';
import { cardOptions } from '#src/payments/method/payment-method.ts';
import { Secret } from '#src/secret.ts';

/** A provider's test values: cards and currencies, with the outcomes that its documentation promises. */
export type TestValues = {
  /** ISO 4217 code, and ISO 3166-1 code of the payer's country. */
  readonly currency: string;
  readonly country: string;
  readonly approved?: TestCard;
  readonly declined?: TestCard & { readonly iso8583Code: string };
  /** The provider's payment method for redirected payers. */
  readonly walletType?: string;
  /** A wallet's answer that the provider approves in its test environment. */
  readonly walletToken?: { readonly type: string; readonly token: string };
  /** true: each local method of the connection is tried. */
  readonly triesLocalMethods?: true;
  /** false: the provider cannot promise that a payment by card that it has not received will never be made. */
  readonly canClose?: false;
};

/** A test card. The number or the holder's name determines the provider's behaviour. */
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

type Checks = AsyncGenerator<Checked, void>;
type Approved = Extract<Outcome, { kind: 'approved' }>;

/** Amount of each payment, in the currency's minor unit. The parts of pesos of Colombia have no cents. */
const AMOUNT = 1_000n;
const AMOUNTS: Readonly<Record<string, bigint>> = { COP: 2_000_000n };
const REDIRECT_TERM_MS = 30 * 60_000;

/**
 * Calls a provider's test environment through its connection, a few times for each way to pay, and yields the expected
 * and the actual outcome of each call. If the provider completes an action later (such as a received capture), `pending` is
 * expected.
 */
export async function* checkProvider(connection: ProviderConnection, values: TestValues): Checks {
  const isThere = (await connection.probe?.()) ?? false;
  yield compare('probe', ['answered'], isThere ? 'answered' : 'not answered: key, account or address');
  const { approved, declined, walletType, walletToken } = values;
  if (approved) {
    yield* checkPurchase(connection, cardAttempt(values, approved, true));
    yield* checkAuthorization(connection, () => cardAttempt(values, approved, false));
    const never = values.canClose === false ? 'unknown' : 'not_sent';
    yield* checkNeverReceived(connection, cardAttempt(values, approved, true), never);
  }
  if (declined) {
    const outcome = await connection.pay(cardAttempt(values, declined, true));
    yield compare('declined card', [`declined ${declined.iso8583Code}`], describeOutcome(outcome));
  }
  if (walletToken) {
    const { type, token } = walletToken;
    const secret = { token: new Secret(token), lastFour: '' };
    const attempt = {
      ...factsOf(values),
      method: { by: 'wallet_token', type, ...secret, ...PLAIN },
    } as const;
    yield compare(`token of ${type}`, ['approved'], describeOutcome(await connection.pay(attempt)));
  }
  if (walletType !== undefined) {
    const method = { by: 'payer', type: walletType, show: 'page' } as const;
    yield* checkRedirect(connection, { ...factsOf(values), method });
  }
  if (values.triesLocalMethods) {
    const { localMethods } = connection.capabilities;
    for (const [type, local] of Object.entries(localMethods))
      yield* checkLocalMethod(connection, type, local);
  }
}

async function* checkPurchase(connection: ProviderConnection, attempt: PaymentAttempt): Checks {
  const paid = await connection.pay(attempt);
  yield compare('purchase', ['approved'], describeOutcome(paid));
  if (paid.kind !== 'approved') return;
  const again = await connection.pay(attempt);
  const isSame = again.kind === 'approved' && again.reference === paid.reference;
  const repeat = isSame ? 'the first payment' : `${describeOutcome(again)}, another payment`;
  yield compare('the same purchase under the same key', ['the first payment', 'unknown'], repeat);
  if (connection.lookUp) {
    const known = await connection.lookUp(lookUpOf(attempt, paid.reference));
    yield compare('look-up by its reference', [paid.kind], describeOutcome(known));
    const forgotten = await connection.lookUp(lookUpOf(attempt, undefined));
    yield compare('look-up by our id alone', [paid.kind], describeOutcome(forgotten));
  }
  for (const part of ['a first part', 'a second part']) {
    const refund = operationOn(attempt, paid, attempt.money.minorUnits / 4n);
    const outcome = (await connection.refund?.(refund)) ?? NONE;
    yield compare(`refund of ${part}`, ['approved', 'pending'], describeOutcome(outcome));
  }
}

async function* checkAuthorization(connection: ProviderConnection, newAttempt: () => PaymentAttempt): Checks {
  if (!connection.capabilities.authorization) return;
  for (const verb of ['capture', 'cancel'] as const) {
    const attempt = newAttempt();
    const { minorUnits } = attempt.money;
    const authorized = await connection.pay(attempt);
    yield compare(`authorization, to ${verb}`, ['approved'], describeOutcome(authorized));
    if (authorized.kind !== 'approved') continue;
    const operation = operationOn(attempt, authorized, verb === 'capture' ? minorUnits / 2n : minorUnits);
    const outcome = (await connection[verb]?.(operation)) ?? NONE;
    const name = verb === 'capture' ? 'capture of half the amount' : 'cancel';
    yield compare(name, ['approved', 'pending'], describeOutcome(outcome));
  }
}

/** Checks a payment that is never sent: once closed, it must count as never made, where the provider can close it. */
async function* checkNeverReceived(
  connection: ProviderConnection,
  attempt: PaymentAttempt,
  believed: 'not_sent' | 'unknown',
): Checks {
  if (!connection.lookUp) return;
  const outcome = await connection.lookUp({ ...lookUpOf(attempt, undefined), close: true });
  yield compare('close of a purchase that was never sent', [believed], describeOutcome(outcome));
}

async function* checkRedirect(connection: ProviderConnection, attempt: PaymentAttempt): Checks {
  const sent = await connection.pay(attempt);
  yield compare('payer redirected', ['awaits_payer'], describeOutcome(sent));
  if (sent.kind !== 'awaits_payer' || !connection.lookUp) return;
  const query = lookUpOf(attempt, sent.reference);
  const open = await connection.lookUp(query);
  yield compare('look-up before anybody has paid', ['awaits_payer'], describeOutcome(open));
  const closed = await connection.lookUp({ ...query, close: true });
  // A provider whose lists lag behind cannot report at once that there is no payment.
  yield compare('close of the redirect', ['expired', 'unknown'], describeOutcome(closed));
}

/** Checks a local method: its code or page, its repeat under the same key, and its close. Nobody pays it. */
async function* checkLocalMethod(connection: ProviderConnection, type: string, local: LocalMethod): Checks {
  let bankId = '';
  if (local.needs.includes(BANK_ID)) {
    const banks = (await connection.listBanks?.(type).catch(() => [])) ?? [];
    yield compare(`banks of ${type}`, ['listed'], banks.length > 0 ? `listed: ${banks.length}` : 'none');
    bankId = banks[0]?.id ?? '';
  }
  const attempt = localAttempt(type, local, bankId);
  const made = await connection.pay(attempt);
  yield compare(type, ['awaits_payer'], describeOutcome(made));
  if (made.kind !== 'awaits_payer') return;
  const again = await connection.pay(attempt);
  const isSame = again.kind === 'awaits_payer' && again.reference === made.reference;
  const repeat = isSame ? 'the first code' : `${describeOutcome(again)}, another code`;
  yield compare(`the same ${type} under the same key`, ['the first code'], repeat);
  if (!connection.lookUp) return;
  const open = await connection.lookUp(lookUpOf(attempt, made.reference));
  yield compare(`look-up of ${type} before anybody has paid`, ['awaits_payer'], describeOutcome(open));
  if (!local.close) return;
  const closed = await connection.lookUp({ ...lookUpOf(attempt, made.reference), close: true });
  yield compare(`close of ${type}`, ['expired'], describeOutcome(closed));
}

const BANK_ID = 'payment_method.detail.bank_transfer.bank_id';

/** Amount of local methods in minor units, which is above the least one. */
const LOCAL_AMOUNT = 10_000n;

const PAYER = { firstName: 'Ana', lastName: 'Gómez', email: 'ana@example.com' };

/** Further data of the test payers of each country, from public examples. */
const LOCAL_PAYERS: Readonly<Record<string, MessageInitShape<typeof CustomerPayerSchema>>> = {
  BR: {
    document: { documentType: 'CPF', documentNumber: '19119119100' },
    billingAddress: {
      ...{ addressLine1: 'Avenida Paulista, 1578', neighborhood: 'Bela Vista', city: 'São Paulo' },
      ...{ state: 'SP', zipCode: '01310200', country: 'BR' },
    },
  },
  CO: {
    document: { documentType: 'CC', documentNumber: '76262349' },
    phone: { countryCode: '57', number: '3001234567' },
    ipAddress: '203.0.113.7',
    billingAddress: {
      ...{ addressLine1: 'Carrera 7 # 11-27', neighborhood: 'La Candelaria', city: 'Bogotá' },
      ...{ state: 'DC', zipCode: '111711', country: 'CO' },
    },
  },
};

function localAttempt(type: string, local: LocalMethod, bankId: string): PaymentAttempt {
  const { countries, currencies, needs, expiry } = local;
  const [country = '', currency = ''] = [countries[0], currencies[0]];
  const facts = factsOf({ country, currency });
  const category = needs.includes(BANK_ID) || type === 'PIX' ? 'BANK_TRANSFER' : 'TICKET';
  return {
    ...facts,
    money: { minorUnits: AMOUNTS[currency] ?? LOCAL_AMOUNT, currency },
    expiresAtMs: facts.createdAtMs + expiry.default * 60_000,
    customerPayer: create(CustomerPayerSchema, { ...PAYER, ...LOCAL_PAYERS[country] }),
    method: {
      ...{ by: 'payer', type, show: 'instructions', category, bankId },
      ...{ wantedExpiryMs: undefined, accountType: undefined },
    },
  };
}

const NONE: Outcome = { kind: 'not_sent', detail: 'the connector has no such call', because: 'turned_away' };

/**
 * Compares an outcome with the expectation. @param believed the expected kinds, one of which must begin the
 * description.
 */
function compare(name: string, believed: readonly string[], seen: string): Checked {
  const isAsBelieved = believed.some((one) => seen === one || seen.startsWith(`${one}:`));
  return { name, believed: believed.join(' or '), seen, isAsBelieved };
}

/** Describes an outcome in one line: the kind, and the provider's message. Outcomes contain no card data. */
function describeOutcome(outcome: Outcome): string {
  if (outcome.kind === 'not_sent' || outcome.kind === 'unknown') return `${outcome.kind}: ${outcome.detail}`;
  const { transactionId, status, responseCode, responseMessage } = outcome.providerData;
  const code = outcome.kind === 'declined' ? ` ${outcome.iso8583Code}` : '';
  const said = [transactionId, status, responseCode, responseMessage].filter((text) => text !== '');
  const page = payersPage(outcome);
  const url = page && ` ${page}`;
  return `${outcome.kind}${code}: ${said.join(' ')}${url}`;
}

/** Options of a plain purchase. */
const PLAIN = cardOptions(undefined);

function cardAttempt(values: TestValues, card: TestCard, capture: boolean): PaymentAttempt {
  const { number, securityCode, ...open } = card;
  return {
    ...factsOf(values),
    method: {
      ...{ by: 'card', type: 'CARD' },
      card: { ...open, number: new Secret(number), securityCode: new Secret(securityCode) },
      ...PLAIN,
      capture,
    },
  };
}

function factsOf({ currency, country }: TestValues): AttemptFacts {
  const paymentId = randomUUID();
  return {
    transactionId: randomUUID(),
    paymentId,
    money: { minorUnits: AMOUNTS[currency] ?? AMOUNT, currency },
    createdAtMs: Date.now(),
    description: 'A test of the connection',
    merchantOrderId: `try-${paymentId.slice(0, 8)}`,
    merchantReference: `try-${paymentId.slice(0, 8)}`,
    country,
    returnUrl: 'https://example.com/return',
    cancelUrl: 'https://example.com/canceled',
    notificationUrl: 'https://example.com/notifications',
    expiresAtMs: Date.now() + REDIRECT_TERM_MS,
    customerPayer: create(CustomerPayerSchema, PAYER),
    additionalData: undefined,
    taxes: undefined,
    metadata: [],
  };
}

function lookUpOf({ method, ...attempt }: PaymentAttempt, reference: string | undefined): LookUp {
  const { transactionId, money } = attempt;
  const of: LookedUp = chargesCard(method)
    ? { kind: 'CARD', capture: method.capture, verify: false, softDescriptor: '', attempt }
    : { kind: kindOf(method) as 'WALLET', type: method.type, attempt };
  return { transactionId, money, reference, ageMs: 0, payerTimeLeftMs: REDIRECT_TERM_MS, close: false, of };
}

function operationOn(attempt: PaymentAttempt, paid: Approved, minorUnits: bigint): CaptureOperation {
  const { transactionId, money } = attempt;
  const payment: Target = { transactionId, reference: paid.reference, money };
  return {
    transactionId: randomUUID(),
    money: { minorUnits, currency: money.currency },
    isWhole: minorUnits === money.minorUnits,
    isFinal: true,
    merchantReference: attempt.merchantReference,
    description: '',
    reason: 'REQUESTED_BY_CUSTOMER',
    payment,
    target: payment,
  };
}
