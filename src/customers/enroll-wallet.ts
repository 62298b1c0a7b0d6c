import { create, fromBinary } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import type { PaymentMethodType } from '#gen/payments/v1/catalogue_pb.js';
import { CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import type {
  EnrollPaymentMethodRequest,
  StoredPaymentMethodSchema,
} from '#gen/payments/v1/payment_method_service_pb.js';
import { Payment_Workflow, Transaction_Category } from '#gen/payments/v1/payment_pb.js';
import { RoutingFactsSchema } from '#gen/payments/v1/routing_facts_pb.js';
import { type Outcome, payersPage } from '#src/connectors/port/outcome.ts';
import type { Caller } from '#src/payments/caller.ts';
import type { PaymentDeps } from '#src/payments/create/create-payment.ts';
import { callOnce, type OnceCall, type OnceResponse, replayedCall } from '#src/payments/keys/call-once.ts';
import { notAvailable } from '#src/payments/method/payment-method.ts';
import { requireRoom } from '#src/payments/method/vault-card.ts';
import { checkCallbackUrl } from '#src/payments/request/check-request.ts';
import { type LiveCatalogue, openConnection } from '#src/payments/route/live-catalogue.ts';
import { drawSeed } from '#src/routing/order-targets.ts';
import { fieldRefusal, invalidField, requireFaultless, ServiceError } from '#src/service-error.ts';
import { queriesOf } from '#src/store/engine/database.ts';
import { lockCustomer } from '#src/store/tables/customers.ts';
import { insertEnrollment } from '#src/store/tables/wallet-enrollments.ts';
import { type CustomerDeps, customerNotFound, customerOf } from './customers.ts';
import { emitMethodEvent } from './emit-method-event.ts';

/** Dependencies of wallet enrollment. */
export type WalletDeps = CustomerDeps &
  Pick<PaymentDeps, 'catalogue' | 'now' | 'publicUrl' | 'observer'> & {
    /** Relays events that were just added to the outbox. */
    readonly eventWritten?: (() => void) | undefined;
  };

/** Time that a payer has to approve, unless the provider gives less. */
const VALID_MS = 3 * 3_600_000;

/**
 * Requests from a wallet's provider the URL where the payer approves, and stores it. The provider is called before
 * anything is stored: if the URL is lost, the payer cannot approve, and the enrollment lapses.
 *
 * @throws ServiceError INVALID_PARAMETERS, PAYMENT_METHOD_NOT_AVAILABLE, OPERATION_NOT_SUPPORTED, CUSTOMER_NOT_FOUND,
 * STORED_METHOD_LIMIT_REACHED, SERVICE_UNAVAILABLE; and as `callOnce`.
 */
export async function enrollWallet(
  deps: WalletDeps,
  request: EnrollPaymentMethodRequest,
  caller: Caller,
  call: OnceCall<typeof StoredPaymentMethodSchema>,
): Promise<OnceResponse<typeof StoredPaymentMethodSchema>> {
  const catalogue = deps.catalogue();
  const replayed = await replayedCall(deps.database, call);
  if (replayed) return replayed;
  requireWallet(catalogue.types.get(request.type), request);
  const customer = { accountId: caller.accountId, customerId: request.customerId.toLowerCase() };
  const { payer } = await customerOf(deps.database, caller.accountId, customer.customerId, 'customer_id');
  const customerPayer = fromBinary(CustomerPayerSchema, payer);
  const connectionId = chooseConnection(deps, catalogue, request, caller.accountId);
  const { identity, enrollWallet: ask } = openConnection(catalogue, connectionId);
  if (!ask) throw new Error('the connection does not enroll wallets');
  const id = deps.newId(caller.accountId);
  const { type, country, callbackUrl } = request;
  const outcome = await deps.observer.providerCall(connectionId, undefined, () =>
    ask({
      ...{ enrollmentId: id, type, country, customerPayer, expiresAtMs: timestampMs(deps.now()) + VALID_MS },
      returnUrl: `${deps.publicUrl()}/v1/enrollments/${id}/return`,
      notificationUrl: `${deps.publicUrl()}/v1/providers/${encodeURIComponent(connectionId)}/notifications`,
    }),
  );
  const redirectUrl = requireRedirect(outcome);
  const response = await callOnce(deps.database, call, async (run) => {
    if (!(await lockCustomer(run, customer.accountId, customer.customerId)))
      throw customerNotFound('customer_id');
    await requireRoom(queriesOf(run), customer, 'customer_id');
    const enrollment = { ...customer, id, type, country, connectionId, redirectUrl, callbackUrl };
    return emitMethodEvent(
      run,
      await insertEnrollment(run, { ...enrollment, validS: VALID_MS / 1000, connectionIdentity: identity }),
    );
  });
  deps.eventWritten?.();
  return response;
}

function requireWallet(offered: PaymentMethodType | undefined, request: EnrollPaymentMethodRequest): void {
  const { country, cardData, callbackUrl } = request;
  const isEnrolled =
    offered?.category === Transaction_Category.WALLET && offered.workflows.includes(Payment_Workflow.DIRECT);
  if (!isEnrolled) throw notAvailable('type', 'is not offered, or cannot be enrolled');
  if (offered.countries.length > 0 && country === '') {
    const message = 'is required, since this payment method is not offered in every country';
    throw invalidField('country', 'REQUIRED', message);
  }
  if (offered.countries.length > 0 && !offered.countries.includes(country)) {
    throw notAvailable('country', 'is not a country where this payment method is offered');
  }
  requireFaultless((report) => {
    if (cardData) report('card_data', 'NOT_ALLOWED', 'must not be sent with a wallet');
    checkCallbackUrl(report, callbackUrl);
  });
}

/** Chooses the first connection that enrolls wallets, on the route that the wallet's payments will probably take. */
function chooseConnection(
  deps: WalletDeps,
  { router, connections }: LiveCatalogue,
  { type, country, customerId }: EnrollPaymentMethodRequest,
  accountId: string,
): string {
  const facts = create(RoutingFactsSchema, {
    ...{ accountId, country, type, category: 'WALLET', workflow: 'DIRECT' },
    ...{ installments: 1, vaulted: true, time: deps.now() },
  });
  const canTake = ({ id }: { readonly id: string }) => {
    const connection = connections.get(id);
    // A wallet whose payments each have a token of their own has nothing to enroll.
    return connection?.enrollWallet !== undefined && !connection.capabilities.walletTokens.includes(type);
  };
  const chosen = router.choose(facts, drawSeed(accountId, customerId), canTake);
  if (!chosen) throw notAvailable('type', 'is not accepted by any route');
  const [first] = chosen.targets;
  if (first) return first.id;
  const message = 'is a wallet that no connection of its route can enroll; nothing was sent';
  throw fieldRefusal('OPERATION_NOT_SUPPORTED', 'type', 'NOT_SUPPORTED', message);
}

function requireRedirect(outcome: Outcome): string {
  if (outcome.kind === 'awaits_payer') return payersPage(outcome);
  if (outcome.kind === 'declined') throw notAvailable('type', 'was refused by the wallet’s provider');
  const message = 'the wallet’s provider gave no usable response; nothing was stored; retry later';
  throw new ServiceError('SERVICE_UNAVAILABLE', message, { retryAfterS: 5 });
}
