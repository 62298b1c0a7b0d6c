import { create, isMessage } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import type { ConnectionConfig } from '#gen/payments/v1/catalogue_pb.js';
import {
  BrowserInfoSchema,
  type CustomerPayer,
  CustomerPayerSchema,
} from '#gen/payments/v1/customer_payer_pb.js';
import {
  BankTransferSchema,
  type CardData,
  CardDataSchema,
  CardSchema,
  type PaymentMethodDetail,
  PaymentMethodDetailSchema,
  PaymentMethodSchema,
  StoredCredentialsSchema,
  ThreeDSecureSchema,
  TicketSchema,
  TransactionPaymentMethodSchema,
  WalletSchema,
} from '#gen/payments/v1/payment_method_pb.js';
import {
  AmountSchema,
  CheckoutSchema,
  type Payment,
  Payment_Workflow,
  PaymentSchema,
  RoutingRulesSchema,
  Transaction_Type,
  TransactionSchema,
} from '#gen/payments/v1/payment_pb.js';
import type { CreatePaymentRequest } from '#gen/payments/v1/payment_service_pb.js';
import { chargesCard, isLocalMethod, type LocalMethodOfPayer } from '#src/connectors/port/attempt.ts';
import { type Money, toDecimal } from '#src/money.ts';
import { categoryOf, type RequestedMethod, workflowOfMethod } from '#src/payments/method/payment-method.ts';
import type { ChosenRoute } from '#src/routing/router.ts';
import { atConnection, setStates } from '../model/record.ts';
import { WAITING } from '../model/states.ts';
import { recordedAdditionalData } from './additional-data.ts';

/** Facts about a payment before its provider is called. */
export type PaymentFacts = {
  readonly paymentId: string;
  readonly transactionId: string;
  /** The account is set to show authorizations as such. */
  readonly tellsAuthorized: boolean;
  readonly request: CreatePaymentRequest;
  readonly money: Money;
  readonly method: RequestedMethod;
  /** The record's `created_with`. */
  readonly createdWith: '' | 'PUBLIC_KEY';
  /** Displayable data of the card, whether sent or vaulted. */
  readonly cardData: CardData | undefined;
  /** A UUID-shaped keyed hash of the wallet's token, for enrollments. */
  readonly walletFingerprint: string;
  readonly merchantReference: string;
  readonly chosen: ChosenRoute;
  /** The first connection to try. */
  readonly connection: ConnectionConfig;
  readonly createdAt: Timestamp;
  /** The service's URL for payers, without a trailing slash. */
  readonly publicUrl: string;
  /** When a local method's code is to expire. */
  readonly expiresAt: Timestamp | undefined;
};

/** Returns the complete record of a payment that is about to be sent and awaits its outcome. */
export function newRecord(facts: PaymentFacts): Payment {
  const { request, money, method, chosen } = facts;
  const customerPayer = recordedPayer(request.customerPayer);
  const type = shownType(method, facts.tellsAuthorized);
  const detail = recordedDetail(facts, type);
  const methodFields = {
    type: method.type,
    vaultedToken: request.paymentMethod?.vaultedToken ?? '',
    token: request.paymentMethod?.token ?? '',
    vaultOnSuccess: request.paymentMethod?.vaultOnSuccess ?? false,
  };
  const transaction = create(TransactionSchema, {
    id: facts.transactionId,
    type,
    category: categoryOf(method),
    amount: toDecimal(money),
    paymentMethod: create(TransactionPaymentMethodSchema, { ...methodFields, detail }),
    description: request.description,
    merchantReference: facts.merchantReference,
    deviceFingerprint: customerPayer.deviceFingerprint,
    createdAt: facts.createdAt,
    ...atConnection(facts.connection),
  });
  const record = create(PaymentSchema, {
    id: facts.paymentId,
    accountId: request.accountId,
    description: request.description,
    country: request.country,
    merchantOrderId: request.merchantOrderId,
    createdAt: facts.createdAt,
    amount: create(AmountSchema, {
      captured: toDecimal({ minorUnits: 0n, currency: money.currency }),
      currency: money.currency,
      refunded: toDecimal({ minorUnits: 0n, currency: money.currency }),
      value: toDecimal(money),
    }),
    checkout: create(CheckoutSchema, {
      session: request.checkout?.session ?? '',
      sdkActionRequired: method.by === 'payer',
    }),
    paymentMethod: create(PaymentMethodSchema, { ...methodFields, paymentMethodDetail: detail }),
    customerPayer,
    additionalData: recordedAdditionalData(request.additionalData, money.currency),
    workflow:
      request.workflow === Payment_Workflow.SDK_CHECKOUT ? request.workflow : workflowOfMethod(method),
    callbackUrl: request.callbackUrl,
    createdWith: facts.createdWith,
    taxes: request.taxes,
    taxesList: request.taxesList,
    metadata: request.metadata.map(({ key, value }) => ({ key, value })),
    routingRules: create(RoutingRulesSchema, {
      condition: {
        id: chosen.route.id,
        name: chosen.route.name || undefined,
        description: chosen.route.description || undefined,
      },
      smartRouting: chosen.smart,
      monitors: chosen.monitored,
    }),
  });
  setStates(record, transaction, WAITING, facts.createdAt);
  return record;
}

/**
 * Returns the type of the transaction. As the interface specifies, an authorization is shown as a purchase unless the
 * account is set to show authorizations as AUTHORIZE.
 */
function shownType(method: RequestedMethod, tellsAuthorized: boolean): Transaction_Type {
  if (!chargesCard(method)) return Transaction_Type.PURCHASE;
  if (method.verify) return Transaction_Type.VERIFY;
  return tellsAuthorized && !method.capture ? Transaction_Type.AUTHORIZE : Transaction_Type.PURCHASE;
}

/** The stored customer of a payment, with the payer's stored data. */
type StoredCustomer = { readonly id: string; readonly payer: CustomerPayer };

/**
 * Completes a request with the stored customer's data.
 *
 * @param options.payerAdds true: the payer sent the request, whose data adds to the customer's and changes none of it.
 */
export function withStoredPayer(
  request: CreatePaymentRequest,
  stored: StoredCustomer | undefined,
  { payerAdds }: { readonly payerAdds: boolean },
): CreatePaymentRequest {
  if (!stored) return request;
  const { customerPayer } = request;
  const sent = payerAdds && customerPayer ? onlyAdding(customerPayer, stored.payer) : customerPayer;
  return { ...request, customerPayer: mergedPayer(sent, stored) };
}

/** Returns the fields of a payer's data about which a customer's data says nothing. */
function onlyAdding(sent: CustomerPayer, stored: CustomerPayer): CustomerPayer {
  const says = (value: unknown) => (Array.isArray(value) ? value.length > 0 : !saysNothing(value));
  const added = Object.entries(sent).filter(([name]) => !says(stored[name as keyof CustomerPayer]));
  return create(CustomerPayerSchema, Object.fromEntries(added));
}

/** Merges the payer's data field by field; the request wins. A document or address is taken whole from one side. */
function mergedPayer(sent: CustomerPayer | undefined, { id, payer }: StoredCustomer): CustomerPayer {
  return create(CustomerPayerSchema, {
    ...sent,
    ...payer,
    ...Object.fromEntries(Object.entries(sent ?? {}).filter(([, value]) => !saysNothing(value))),
    id,
    deviceFingerprints: sent?.deviceFingerprints ?? [],
    browserInfo: sent?.browserInfo,
  });
}

/** Returns the payer of a record, which always shows a browser. */
function recordedPayer(payer: CustomerPayer | undefined): CustomerPayer {
  const { browserInfo = create(BrowserInfoSchema) } = payer ?? {};
  return { ...(payer ?? create(CustomerPayerSchema)), browserInfo };
}

/** Returns true for undefined, an empty string, and a message that contains only these. */
export function saysNothing(value: unknown): boolean {
  if (!isMessage(value)) return value === undefined || value === '';
  return Object.entries(value).every(([name, inner]) => name.startsWith('$') || saysNothing(inner));
}

function recordedDetail(facts: PaymentFacts, type: Transaction_Type): PaymentMethodDetail {
  const { method, cardData } = facts;
  if (isLocalMethod(method)) return localDetail(facts, method);
  if (method.by !== 'card') {
    const value = create(WalletSchema, {
      installments: 1,
      installmentsType: 'MERCHANT',
      ...walletDetail(method, facts.walletFingerprint),
    });
    return create(PaymentMethodDetailSchema, { kind: { case: 'wallet', value } });
  }
  const { threeDSecure } = method;
  const value = create(CardSchema, {
    // A purchase is shown as captured, as the interface specifies, even if only an authorization was requested. The
    // transaction's row records which.
    capture: type === Transaction_Type.PURCHASE,
    installments: method.installments,
    installmentsType: 'MERCHANT',
    // A stored card has no 3-D Secure results, since results belong to one payment.
    cardData: cardData && threeDSecure ? { ...cardData, threeDSecure } : cardData,
    verify: method.verify,
    softDescriptor: method.softDescriptor,
    storedCredentials: method.storedCredentials ?? create(StoredCredentialsSchema),
  });
  return create(PaymentMethodDetailSchema, { kind: { case: 'card', value } });
}

/** Returns the detail of a local method, which leads its payer to our own page until the provider gives another one. */
function localDetail(
  facts: PaymentFacts,
  { category, bankId, accountType }: LocalMethodOfPayer,
): PaymentMethodDetail {
  const redirectUrl = `${facts.publicUrl}/v1/payments/${facts.paymentId}/pay`;
  const common = { redirectUrl, expiresAt: facts.expiresAt };
  return create(PaymentMethodDetailSchema, {
    kind:
      category === 'TICKET'
        ? { case: 'ticket', value: create(TicketSchema, common) }
        : {
            case: 'bankTransfer',
            value: create(BankTransferSchema, { ...common, bankId: bankId || undefined, accountType }),
          },
  });
}

function walletDetail(
  method: Exclude<RequestedMethod, { by: 'card' } | LocalMethodOfPayer>,
  fingerprint: string,
) {
  switch (method.by) {
    case 'wallet_token': {
      const { capture, softDescriptor, storedCredentials, lastFour } = method;
      const cardData = lastFour ? create(CardDataSchema, { lfd: lastFour }) : undefined;
      return { capture, softDescriptor, storedCredentials, cardData };
    }
    case 'wallet':
      return { cardData: enrolledCard(method.cardType, fingerprint) };
    default:
      return {};
  }
}

/**
 * Returns the card of an enrolled wallet. Only its type is known; the interface shows the other fields as empty, not
 * null.
 */
function enrolledCard(cardType: string | undefined, fingerprint: string): CardData {
  return create(CardDataSchema, {
    issuerName: '',
    issuerCode: '',
    countryCode: '',
    category: '',
    type: cardType ?? '',
    threeDSecure: create(ThreeDSecureSchema),
    fingerprint,
  });
}
