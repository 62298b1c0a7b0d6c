import type {
  PaymentCreateRequest,
  PaymentMethodDataAuthentication,
} from 'mercadopago/dist/clients/payment/create/types.js';
import {
  type StoredCredentials,
  type ThreeDSecure,
  ThreeDSecureSchema,
} from '#gen/payments/v1/payment_method_pb.js';
import type { AttemptFacts, Method } from '../port/attempt.ts';
import { SECURITY_CODE, type SentWithCard } from '../port/capabilities.ts';
import { additionalInfoOf, cardPayerOf } from './card-payer.ts';
import type { PreparedCard } from './card-token.ts';
import { createPayment, type PaymentRequest } from './payment-request.ts';
import type { MercadoPagoSettings } from './settings.ts';

/** A payment by card. */
export type CardMethod = Extract<Method, { by: 'card' }>;

/** Builds the request that charges a card, or authorizes a charge. */
export function createCardPayment(
  attempt: AttemptFacts & { readonly method: CardMethod },
  amount: number,
  { token, methodId, issuerId }: PreparedCard,
  settings: MercadoPagoSettings,
): PaymentRequest {
  const { capture, installments, softDescriptor, storedCredentials, threeDSecure } = attempt.method;
  const descriptor = descriptorOf(softDescriptor) || settings.statementDescriptor;
  return createPayment(attempt, amount, settings, {
    token,
    payment_method_id: methodId,
    ...(issuerId !== undefined && { issuer_id: issuerId }),
    installments,
    capture,
    payer: cardPayerOf(attempt.customerPayer, settings),
    additional_info: additionalInfoOf(attempt, amount),
    ...(descriptor !== '' && { statement_descriptor: descriptor }),
    ...(settings.binaryMode && { binary_mode: true }),
    ...(storedCredentials && storedCredentialsOf(storedCredentials)),
    ...(threeDSecure && { payment_method: { data: { authentication: authenticationOf(threeDSecure) } } }),
  });
}

/** Returns the paths of the fields that a payment by card needs and lacks. */
export function missingForCards(
  { payer, hasSecurityCode }: SentWithCard,
  { withoutSecurityCode }: Pick<MercadoPagoSettings, 'withoutSecurityCode'>,
): string[] {
  return [
    ...(payer?.email ? [] : ['customer_payer.email']),
    ...(hasSecurityCode || withoutSecurityCode ? [] : [SECURITY_CODE]),
  ];
}

const RESULT_FIELDS = ['version', 'electronicCommerceIndicator', 'cryptogram'] as const;

/** Returns the names of the fields without which results of 3-D Secure prove nothing. */
export function missingForResults(results: ThreeDSecure): string[] {
  return RESULT_FIELDS.filter((name) => !results[name]).map((name) => ThreeDSecureSchema.field[name].name);
}

function authenticationOf(results: ThreeDSecure): PaymentMethodDataAuthentication {
  const { version, electronicCommerceIndicator: eci, cryptogram } = results;
  const { transactionId, directoryServerTransactionId } = results;
  return {
    ...(version && { three_ds_version: version }),
    ...(eci && { eci: eci.padStart(2, '0') }),
    ...(cryptogram && { cryptogram }),
    ...(directoryServerTransactionId && { ds_trans_id: directoryServerTransactionId }),
    ...(transactionId && { three_ds_server_trans_id: transactionId }),
  };
}

/** Returns the fields of a payment whose card is to be stored, or was stored before. */
function storedCredentialsOf(
  credentials: StoredCredentials,
): Pick<PaymentCreateRequest, 'point_of_interaction' | 'forward_data'> {
  const { reason, usage, networkTransactionId } = credentials;
  const isUsed = usage === 'USED';
  const isMerchants = isUsed && reason !== 'CARD_ON_FILE';
  return {
    point_of_interaction: {
      type: 'CREDENTIAL_ON_FILE',
      transaction_data: {
        first_transaction: !isUsed,
        storage: isUsed ? 'stored' : 'store',
        transaction_initiator: isMerchants ? 'merchant' : 'customer',
      },
    },
    ...(networkTransactionId && {
      forward_data: { network_transaction_data: { network_transaction_id: networkTransactionId } },
    }),
  };
}

/** The shortest of the limits that Mercado Pago documents. */
const MAX_DESCRIPTOR = 13;

/** Returns a merchant's text for the statement in the letters of the connection's own; '' if none is left. */
function descriptorOf(softDescriptor: string): string {
  const latin = softDescriptor.normalize('NFKD').replace(/[^A-Za-z0-9 .*-]/g, '');
  const text = latin.trim().slice(0, MAX_DESCRIPTOR).trim();
  return /[A-Za-z0-9]/.test(text) ? text : '';
}
