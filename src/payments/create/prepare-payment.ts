import { randomUUID } from 'node:crypto';
import { create, fromBinary } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import {
  type Payment,
  Payment_Status,
  Transaction_Status,
  Transaction_Type,
} from '#gen/payments/v1/payment_pb.js';
import type { CreatePaymentRequest } from '#gen/payments/v1/payment_service_pb.js';
import type { RoutingFacts } from '#gen/payments/v1/routing_facts_pb.js';
import { chargesCard, isLocalMethod, type PaymentAttempt } from '#src/connectors/port/attempt.ts';
import { type Money, parseMoney } from '#src/money.ts';
import { newId } from '#src/new-id.ts';
import { type CardDeps, readCard, walletFingerprint } from '#src/payments/method/payer-card.ts';
import { readMethod } from '#src/payments/method/payment-method.ts';
import { cardToVault } from '#src/payments/method/vault-card.ts';
import { chooseRoute } from '#src/payments/route/choose-route.ts';
import { type LiveCatalogue, openConnection } from '#src/payments/route/live-catalogue.ts';
import { routingFacts } from '#src/payments/route/routing-facts.ts';
import { drawSeed } from '#src/routing/order-targets.ts';
import type { ChosenRoute } from '#src/routing/router.ts';
import type { Claim } from '#src/store/engine/claim-payment.ts';
import type { Database } from '#src/store/engine/database.ts';
import type { StoredSession } from '#src/store/tables/checkout-sessions.ts';
import type { SessionUse } from '#src/store/tables/single-uses.ts';
import { timestampText } from '#src/wire/wire-json-encode.ts';
import type { KeyedCaller } from '../caller.ts';
import { type CheckSchedule, leaseS } from '../model/schedule.ts';
import { WAITING } from '../model/states.ts';
import { type PayerHashKeys, payerHashes } from '../payer-hashes.ts';
import { columnsOfMethod, encodeRecord } from '../stored-record.ts';
import { newRecord, withStoredPayer } from './new-record.ts';
import { withChoices } from './payer-choices.ts';
import { expiryAt, firstAttempt, wayOfPayer } from './payment-attempt.ts';
import { hasTerms, requestInSession, requireMethodInSession } from './session-terms.ts';
import { findReferences, publicKeyAlone, requireNothingStored } from './stored-references.ts';

/** Dependencies of preparePayment. */
export type PrepareDeps = CardDeps &
  PayerHashKeys & {
    readonly database: Database;
    /** Returns the catalogue in force. A payment keeps the catalogue it started with. */
    readonly catalogue: () => LiveCatalogue;
    readonly now: () => Timestamp;
    readonly schedule: CheckSchedule;
    /** Returns the service's URL for providers and payers, without a trailing slash. */
    readonly publicUrl: () => string;
  };

/** A payment that can be sent once its key is claimed. */
export type PreparedPayment = {
  /** The record to show until the outcome is known. */
  readonly record: Payment;
  readonly claim: Omit<Claim, 'accountId' | 'idempotencyKey' | 'requestHash' | 'requestShape'>;
  /** The first attempt. Later attempts differ only in their transaction. */
  readonly attempt: PaymentAttempt;
  readonly chosen: ChosenRoute;
  readonly facts: RoutingFacts;
  /** The catalogue that the payment started with. */
  readonly catalogue: LiveCatalogue;
};

/**
 * Finds the stored objects that the request refers to, chooses the route and its first connection, and builds the
 * record and the attempt. Writes nothing and sends nothing.
 *
 * @throws ServiceError if the request cannot be fulfilled.
 */
export async function preparePayment(
  deps: PrepareDeps,
  sent: CreatePaymentRequest,
  caller: KeyedCaller,
): Promise<PreparedPayment> {
  const { accountId, idempotencyKey, secretPresented, tellsAuthorized = false, withinSession } = caller;
  const catalogue = deps.catalogue();
  const isOpenToAll = !secretPresented && withinSession === undefined;
  if (isOpenToAll) requireNothingStored(sent);
  const stored = await findReferences(deps.database, sent, accountId, withinSession);
  const storedPayer = stored?.customer && fromBinary(CustomerPayerSchema, stored.customer.payer);
  const storedCustomer = stored?.customer && storedPayer && { id: stored.customer.id, payer: storedPayer };
  const complete = withChoices(sent, stored?.oneTimeToken?.choices, storedPayer);
  // Only the merchant may change a customer's data; a payer may add what is missing for this payment.
  const payerAdds = withinSession !== undefined;
  const inSession = requestInSession(complete, stored?.session);
  const known = withStoredPayer(inSession, storedCustomer, { payerAdds });
  const method = readMethod(known, stored, catalogue.types);
  const request = isLocalMethod(method) && payerAdds ? withPayersAddress(known, caller) : known;
  requireMethodInSession(stored?.session, method);
  if (isOpenToAll && method.by !== 'payer') throw publicKeyAlone();
  const money = requireMoney(request);
  const card = await readCard(deps, catalogue.bins, method, accountId);
  const vaultedToken = sent.paymentMethod?.vaultedToken ?? '';
  const fingerprint = walletFingerprint(deps, method, vaultedToken, accountId);
  const createdAt = deps.now();
  const facts = routingFacts(request, method, card?.data, createdAt);
  const seed = drawSeed(accountId, idempotencyKey);
  const chosen = chooseRoute(catalogue, { request, method, facts, seed });
  const [first] = chosen.targets;
  const connection = openConnection(catalogue, first.id);

  const record = newRecord({
    paymentId: newId(accountId),
    transactionId: newId(accountId),
    tellsAuthorized,
    request,
    money,
    method,
    cardData: card?.data,
    createdWith: secretPresented ? '' : 'PUBLIC_KEY',
    walletFingerprint: fingerprint,
    merchantReference: request.merchantReference || `reference-${randomUUID()}`,
    chosen,
    connection: first,
    createdAt,
    publicUrl: deps.publicUrl(),
    expiresAt: expiryAt(method, connection.capabilities, createdAt),
  });
  const attempt = firstAttempt(record, method, card?.attempt, {
    publicUrl: deps.publicUrl(),
    terms: connection.capabilities,
  });
  const claim = {
    ...stateOf(record, attempt, money),
    ...wayOfPayer(method, attempt, createdAt),
    ...payerHashes(deps, accountId, request.country, record.customerPayer ?? {}),
    customerId: stored?.customer?.id,
    cardFingerprint: card?.fingerprint,
    merchantReference: request.merchantReference || undefined,
    createdAt: timestampText(createdAt),
    connectionId: first.id,
    connectionIdentity: connection.identity,
    catalogueVersion: catalogue.version,
    leaseS: leaseS(connection, deps.schedule),
    capture: !chargesCard(method) || method.capture,
    ...(await cardToVault(deps, request, card, stored)),
    session: sessionUse(stored?.session),
    oneTimeToken: stored?.oneTimeToken?.id,
  };
  return { record, claim, attempt, chosen, facts, catalogue };
}

/**
 * Adds the IP address of a payer who pays in a session by a local method, since a page cannot know it, and banks ask for
 * it. The address of a merchant's server says nothing about the payer.
 */
function withPayersAddress(
  request: CreatePaymentRequest,
  { secretPresented, address }: KeyedCaller,
): CreatePaymentRequest {
  const { customerPayer } = request;
  if (secretPresented || !address || customerPayer?.ipAddress) return request;
  const payer = { ...(customerPayer ?? create(CustomerPayerSchema)), ipAddress: address };
  return { ...request, customerPayer: payer };
}

/** Returns the use of a session by its payment; undefined if there is none, or if any number may use it. */
function sessionUse(session: StoredSession | undefined): SessionUse | undefined {
  return session && hasTerms(session) ? { id: session.id, version: session.version } : undefined;
}

function stateOf(record: Payment, attempt: PaymentAttempt, money: Money) {
  return {
    paymentId: attempt.paymentId,
    status: Payment_Status[WAITING.payment],
    record: encodeRecord(record),
    merchantOrderId: record.merchantOrderId,
    ...columnsOfMethod(record),
    country: record.country,
    transactionId: attempt.transactionId,
    transactionStatus: Transaction_Status[WAITING.transaction],
    type: Transaction_Type[record.transactions?.type ?? 0] ?? '',
    minorUnits: money.minorUnits,
    currency: money.currency,
  };
}

function requireMoney({ amount }: CreatePaymentRequest): Money {
  const money = amount && parseMoney(amount.value?.value ?? '', amount.currency);
  if (!money) throw new Error('the amount is missing although it was checked');
  return money;
}
