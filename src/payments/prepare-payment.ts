import { randomUUID, randomUUIDv7 } from 'node:crypto';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import { type CardData, CardDataSchema } from '#gen/payments/v1/payment_method_pb.js';
import {
  type Payment,
  Payment_Status,
  Payment_Workflow,
  Transaction_Status,
  Transaction_Type,
} from '#gen/payments/v1/payment_pb.js';
import type { CreatePaymentRequest } from '#gen/payments/v1/payment_service_pb.js';
import type { RoutingFacts } from '#gen/payments/v1/routing_facts_pb.js';
import type { AttemptCard, PaymentAttempt } from '#src/connectors/attempt.ts';
import type { Outcome, ProviderConnection } from '#src/connectors/connector.ts';
import { type Money, parseMoney } from '#src/money.ts';
import { lotSeed, type Signals } from '#src/routing/order-targets.ts';
import type { ChosenRoute, Router } from '#src/routing/router.ts';
import { Secret } from '#src/secret.ts';
import { INVALID_CREDENTIALS_MESSAGE, type Reason, ServiceError } from '#src/service-error.ts';
import type { Database } from '#src/store/database.ts';
import type { Claim } from '#src/store/payments.ts';
import { findStoredObjects, type StoredObjects, type VaultedToken } from '#src/store/stored-objects.ts';
import { type CardVault, VaultKeyMissingError } from '#src/vault/card-vault.ts';
import { timestampText } from '#src/wire/wire-json-encode.ts';
import type { BinTable } from './bin-table.ts';
import { cardData, cardFingerprint } from './card.ts';
import { chooseRoute } from './choose-route.ts';
import type { LookUpSchedule } from './finish-payment.ts';
import { paymentAttempt } from './payment-attempt.ts';
import { type ChosenMethod, chooseMethod, type MethodTypes, transactionType } from './payment-method.ts';
import { newRecord, type PaymentFacts } from './payment-record.ts';
import { WAITING } from './payment-status.ts';
import { routingFacts } from './routing-facts.ts';
import { encodeRecord } from './stored-record.ts';

/** Dependencies of preparing a payment. */
export type PrepareDeps = {
  readonly database: Database;
  readonly vault: CardVault;
  readonly fingerprintKey: Uint8Array;
  /** The catalogue in force; a payment goes by one and the same to its end. */
  readonly catalogue: () => LiveCatalogue;
  readonly now: () => Timestamp;
  readonly schedule: LookUpSchedule;
  /** The service's address for providers and payers, without a slash at its end. */
  readonly publicUrl: () => string;
};

/** A catalogue made ready for use, its connections open. */
export type LiveCatalogue = {
  readonly types: MethodTypes;
  readonly router: Router;
  readonly bins: BinTable;
  readonly connections: ReadonlyMap<string, ProviderConnection>;
  readonly signals: Signals;
  /** Learns from an attempt's outcome, for choices to come. */
  readonly learn: (connectionId: string, facts: RoutingFacts, outcome: Outcome) => void;
};

/** A payment that needs only its key claimed to be sent. */
export type PreparedPayment = {
  /** The record as it stands while the outcome is waited for. */
  readonly record: Payment;
  readonly claim: Omit<Claim, 'accountId' | 'idempotencyKey' | 'requestHash' | 'requestShape'>;
  /** The first attempt; the others differ in their transaction only. */
  readonly attempt: PaymentAttempt;
  readonly chosen: ChosenRoute;
  readonly facts: RoutingFacts;
  /** The catalogue that the payment goes by. */
  readonly catalogue: LiveCatalogue;
};

/** @throws Error when the catalogue does not have it: the router names only what it has. */
export function openConnection({ connections }: LiveCatalogue, id: string): ProviderConnection {
  const connection = connections.get(id);
  if (!connection) throw new Error(`connection ${id} is not open`);
  return connection;
}

/** For how long an attempt is left to who begins it. */
export function leaseS(connection: ProviderConnection, schedule: LookUpSchedule): number {
  return (connection.deadlineMs + schedule.leaseMarginMs) / 1000;
}

/**
 * Resolves what is stored, narrows the payment method, chooses the route and builds the record and the attempt.
 * Writes nothing and sends nothing.
 *
 * @throws ServiceError when the request cannot be met.
 */
export async function preparePayment(
  deps: PrepareDeps,
  request: CreatePaymentRequest,
  caller: {
    readonly accountId: string;
    readonly idempotencyKey: string;
    readonly secretPresented: boolean;
    readonly tellsAuthorized?: boolean;
  },
): Promise<PreparedPayment> {
  const catalogue = deps.catalogue();
  const method = chooseMethod(request, catalogue.types);
  if (!caller.secretPresented) requireNothingStored(request, method);
  const stored = await findReferences(deps.database, request, method, caller.accountId);
  const money = requireMoney(request);
  const card = await readCard(deps, catalogue, method, stored?.vaultedToken, caller.accountId);
  const createdAt = deps.now();
  const facts = routingFacts(request, method, card?.data, createdAt);
  const seed = lotSeed(caller.accountId, caller.idempotencyKey);
  const chosen = chooseRoute(catalogue, method, facts, seed);
  const [first] = chosen.targets;
  if (!first) throw new Error(`route ${chosen.route.id} has no target`);
  const connection = openConnection(catalogue, first.id);

  const type = transactionType(method, caller.tellsAuthorized ?? false);
  const paymentFacts: PaymentFacts = {
    paymentId: randomUUIDv7(),
    transactionId: randomUUIDv7(),
    type,
    request,
    money,
    method,
    storedCustomer: stored?.customer && {
      id: stored.customer.id,
      payer: fromBinary(CustomerPayerSchema, stored.customer.payer),
    },
    cardData: card?.data,
    walletFingerprint: walletFingerprint(deps, method, caller.accountId),
    merchantReference: request.merchantReference || `reference-${randomUUID()}`,
    chosen,
    connection: first,
    createdAt,
  };
  const record = newRecord(paymentFacts);
  const attempt = paymentAttempt(
    record,
    deps.publicUrl(),
    openConnection(catalogue, first.id).capabilities,
    method,
    {
      card: card?.attempt,
      vaulted: stored?.vaultedToken,
    },
  );
  return {
    record,
    claim: {
      paymentId: attempt.paymentId,
      status: Payment_Status[WAITING.payment],
      record: encodeRecord(record),
      merchantOrderId: record.merchantOrderId,
      createdAt: timestampText(createdAt),
      transactionId: attempt.transactionId,
      transactionStatus: Transaction_Status[WAITING.transaction],
      type: Transaction_Type[type],
      connectionId: first.id,
      connectionIdentity: connection.identity,
      leaseS: leaseS(connection, deps.schedule),
      minorUnits: money.minorUnits,
      currency: money.currency,
      capture: method.kind === 'wallet' || method.options.capture,
      vault: await sealForVault(deps, method, card),
    },
    attempt,
    chosen,
    facts,
    catalogue,
  };
}

/** The public key alone may only begin a redirect that uses nothing stored: anybody may read that key in a page. */
function requireNothingStored(request: CreatePaymentRequest, method: ChosenMethod): void {
  const usesStored =
    request.paymentMethod?.vaultedToken || request.customerPayer?.id || request.checkout?.session;
  if (method.workflow === Payment_Workflow.REDIRECT && method.kind === 'wallet' && !usesStored) return;
  throw new ServiceError('INVALID_CREDENTIALS', INVALID_CREDENTIALS_MESSAGE);
}

async function findReferences(
  database: Database,
  request: CreatePaymentRequest,
  method: ChosenMethod,
  accountId: string,
): Promise<StoredObjects | undefined> {
  const customerId = request.customerPayer?.id || undefined;
  const checkoutSession = request.checkout?.session || undefined;
  const vaultedToken = request.paymentMethod?.vaultedToken || undefined;
  if (!customerId && !checkoutSession && !vaultedToken) return undefined;
  const found = await findStoredObjects(database, accountId, { customerId, checkoutSession, vaultedToken });
  if (customerId && !found.customer) throw notFound('CUSTOMER_NOT_FOUND', 'customer_payer.id');
  if (checkoutSession && !found.checkoutSessionFound)
    throw notFound('CHECKOUT_SESSION_NOT_FOUND', 'checkout.session');
  if (vaultedToken && found.vaultedToken?.type !== method.type) {
    throw notFound('VAULTED_TOKEN_NOT_FOUND', 'payment_method.vaulted_token');
  }
  return found;
}

function notFound(reason: Reason, field: string): ServiceError {
  const message = 'is not known in this account';
  return new ServiceError(reason, `${field}: ${message}`, {
    fields: [{ field, code: 'NOT_ALLOWED', message }],
  });
}

function requireMoney({ amount }: CreatePaymentRequest): Money {
  const money = amount && parseMoney(amount.value?.value ?? '', amount.currency);
  if (!money) throw new Error('the amount was checked before');
  return money;
}

/** A card in its two forms: what may be told of it, and what the provider must be told. */
type ReadCard = { readonly data: CardData; readonly attempt: AttemptCard };

async function readCard(
  deps: PrepareDeps,
  catalogue: LiveCatalogue,
  method: ChosenMethod,
  vaulted: VaultedToken | undefined,
  accountId: string,
): Promise<ReadCard | undefined> {
  if (method.kind === 'card') {
    const { card } = method;
    const fingerprint = cardFingerprint(deps.fingerprintKey, accountId, card.number);
    const data = cardData(card, catalogue.bins(card.number), fingerprint);
    return { data, attempt: attemptCard(data, new Secret(card.number), card.securityCode) };
  }
  if (method.kind !== 'vaulted_card') return undefined;
  if (!vaulted?.card) throw new Error(`vaulted token ${method.token} holds no card`);
  const data = create(CardDataSchema, {
    ...fromBinary(CardDataSchema, vaulted.card.data),
    securityCodeLength: 0,
  });
  const number = await openStored(deps.vault, vaulted.card.number, vaulted.id);
  return { data, attempt: attemptCard(data, number, '') };
}

/** A key that was taken away too early is for the operator to bring back; until then nothing is sent. */
async function openStored(vault: CardVault, sealed: string, token: string): Promise<Secret> {
  try {
    return await vault.open(sealed, token);
  } catch (error) {
    if (!(error instanceof VaultKeyMissingError)) throw error;
    const message = 'the stored card cannot be read at present; nothing was sent';
    throw new ServiceError('SERVICE_UNAVAILABLE', message, { cause: error });
  }
}

function attemptCard(data: CardData, number: Secret, securityCode: string): AttemptCard {
  return {
    number,
    securityCode: securityCode ? new Secret(securityCode) : undefined,
    holderName: data.holderName,
    expirationMonth: data.expirationMonth,
    expirationYear: data.expirationYear,
  };
}

function walletFingerprint(deps: PrepareDeps, method: ChosenMethod, accountId: string): string {
  const enrollment = method.kind === 'wallet' && method.workflow === Payment_Workflow.DIRECT;
  return enrollment ? cardFingerprint(deps.fingerprintKey, accountId, method.token ?? randomUUID()) : '';
}

/** The card is sealed before the payment, so that an approval learned late still finds it. */
async function sealForVault(
  deps: PrepareDeps,
  method: ChosenMethod,
  card: ReadCard | undefined,
): Promise<Claim['vault']> {
  if (method.kind !== 'card' || !method.options.vaultOnSuccess || !card) return undefined;
  const token = randomUUID();
  return {
    token,
    type: method.type,
    card: toBinary(CardDataSchema, { ...card.data, securityCodeLength: 0 }),
    cardNumber: await deps.vault.seal(card.attempt.number, token),
  };
}
