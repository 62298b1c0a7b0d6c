import type { JsonObject } from '@bufbuild/protobuf';
import type { PaymentAttempt } from '#src/connectors/attempt.ts';
import type {
  ConnectContext,
  Connector,
  LookUp,
  Operation,
  Outcome,
  ProviderConnection,
} from '#src/connectors/connector.ts';
import type { HttpRequest } from '#src/connectors/http-client.ts';
import { turnedAway } from '#src/connectors/provider-answer.ts';
import { openProviderClient } from '#src/connectors/provider-client.ts';
import {
  fromDetails,
  fromOperation,
  fromPayment,
  isPaymentMethods,
  isTechnicalCancelTaken,
  PSP_REFERENCE,
} from './from-provider.ts';
import { toAdyenAmount } from './money.ts';
import { readNotifications } from './notifications.ts';
import { readSettings } from './settings.ts';
import {
  canAuthenticate,
  detailsRequest,
  type OperationKind,
  operationRequest,
  paymentMethodsRequest,
  paymentRequest,
  technicalCancelRequest,
} from './to-provider.ts';

/**
 * Speaks to Adyen's Checkout API. Adyen offers no look-up: what became of a payment whose answer was lost, and of every
 * capture, cancel and refund, is told by its signed notifications; a payment of which none tells is canceled by our
 * reference. Its settings: see settings.ts.
 */
export const adyenConnector: Connector = { name: 'adyen', connect };

function connect(settings: JsonObject, context: ConnectContext): ProviderConnection {
  const adyen = readSettings(settings, context.secrets);
  const { origin, basePath, merchantAccount, timeoutMs, redirectMethods } = adyen;
  const { begin, close } = openProviderClient({ origin, timeoutMs }, (request: HttpRequest) => request);
  const ask = (request: HttpRequest) => begin()(request);
  const shownAs = { providerId: context.providerId, merchantAccount };

  async function pay(attempt: PaymentAttempt): Promise<Outcome> {
    const { method } = attempt;
    const isTaken =
      method.kind === 'card' || (method.kind === 'wallet_redirect' && redirectMethods.has(method.type));
    if (!isTaken) return turnedAway('redirect_methods does not name this payment method');
    const amount = toAdyenAmount(attempt.money);
    if (!amount) return turnedAway('it has no such amount in this currency');
    if (method.kind === 'card' && method.threeDSecureSetupId !== undefined && !canAuthenticate(attempt)) {
      return turnedAway("3-D Secure needs the payer's browser_info");
    }
    return fromPayment(await ask(paymentRequest(attempt, amount, adyen)), attempt, shownAs);
  }

  /** Ends what the payer did at the page they were sent to, with what their browser brought back. */
  async function complete(query: LookUp): Promise<Outcome> {
    const redirectResult = new URLSearchParams(query.hint?.returnQuery).get('redirectResult');
    if (!redirectResult) return turnedAway('the payer brought no redirectResult back');
    const result = await ask(detailsRequest(query.transactionId, redirectResult, adyen));
    return fromDetails(result, query, shownAs);
  }

  const operate = (kind: OperationKind) => async (operation: Operation) => {
    const { reference = '' } = operation.payment;
    const amount = toAdyenAmount(operation.money);
    if (!PSP_REFERENCE.test(reference)) return turnedAway("the payment's pspReference is not known yet");
    if (!amount) return turnedAway('it has no such amount in this currency');
    const result = await ask(operationRequest(kind, operation, reference, amount, adyen));
    return fromOperation(result, kind, operation, shownAs);
  };

  return {
    identity: [origin + basePath, merchantAccount].join(' '),
    capabilities: {
      methods: redirectMethods.size > 0 ? ['card', 'wallet_redirect'] : ['card'],
      authorization: true,
      captures: 'one',
      refunds: 'several',
      cancel: true,
      verify: true,
      installments: adyen.installments,
      challenge: true,
      externalThreeDSecure: true,
      storedCredentials: true,
      softDescriptor: true,
      authorizationValidDays: 7,
      redirectValidMinutes: 1_440,
    },
    deadlineMs: timeoutMs,
    pay,
    capture: operate('capture'),
    cancel: operate('cancel'),
    refund: operate('refund'),
    complete,
    lookUp: undefined,
    technicalCancel: {
      afterMs: adyen.technicalCancelAfterMs,
      send: async ({ transactionId }) =>
        isTechnicalCancelTaken(
          await ask(technicalCancelRequest(transactionId, adyen)),
          transactionId,
          shownAs,
        ),
    },
    readNotification: async (notification) => readNotifications(notification, adyen.hmacKeys, shownAs),
    probe: async () => isPaymentMethods(await ask(paymentMethodsRequest(adyen))),
    close,
  };
}
