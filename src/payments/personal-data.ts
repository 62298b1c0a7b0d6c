import { create, type DescMessage, type Message, type MessageShape } from '@bufbuild/protobuf';
import { type ReflectMessage, reflect } from '@bufbuild/protobuf/reflect';
import { type Payment, PaymentSchema } from '#gen/payments/v1/payment_pb.js';
import { shownTransaction } from './model/states.ts';

/** Marks messages that are kept whole. */
const WHOLE = 'whole';

/**
 * Fields of a record that outlive the payer's personal data, by message: the outcome of the payment, and the ids with
 * which the merchant and the provider find it. All other fields are erased, including fields added later: names,
 * addresses, documents, devices, free text, and data that merchants and providers send in their own formats.
 */
const KEPT: Readonly<Record<string, readonly string[] | typeof WHOLE>> = {
  'google.protobuf.Timestamp': WHOLE,
  'google.type.Decimal': WHOLE,
  'payments.v1.Payment': [
    ...[
      'id',
      'account_id',
      'country',
      'status',
      'sub_status',
      'merchant_order_id',
      'created_at',
      'updated_at',
    ],
    ...['amount', 'checkout', 'payment_method', 'customer_payer', 'transactions_history', 'workflow'],
    ...['payment_link_id', 'subscription_code', 'routing_rules', 'simplified_mode', 'created_with'],
  ],
  'payments.v1.Amount': ['captured', 'currency', 'refunded', 'value'],
  'payments.v1.Checkout': WHOLE,
  'payments.v1.RoutingRules': WHOLE,
  'payments.v1.ConnectionData': WHOLE,
  // A stored customer's id identifies nobody once that customer is erased.
  'payments.v1.CustomerPayer': ['id', 'browser_info'],
  'payments.v1.BrowserInfo': [],
  'payments.v1.Transaction': [
    ...['id', 'type', 'status', 'category', 'amount', 'provider_id', 'payment_method', 'response_code'],
    ...[
      'response_message',
      'merchant_reference',
      'provider_data',
      'connection_data',
      'created_at',
      'updated_at',
    ],
    ...['parent_transaction_id', 'settlement'],
  ],
  'payments.v1.TransactionSettlement': WHOLE,
  'payments.v1.ProviderData': [
    ...['id', 'transaction_id', 'account_id', 'status', 'sub_status', 'status_detail', 'response_message'],
    ...['response_code', 'third_party_transaction_id', 'iso8583_response_code', 'iso8583_response_message'],
    ...['merchant_advice_code', 'merchant_advice_code_message', 'amount_received'],
  ],
  'payments.v1.PaymentMethod': [
    ...['type', 'vaulted_token', 'vault_on_success', 'parent_payment_method_type', 'payment_method_detail'],
  ],
  'payments.v1.TransactionPaymentMethod': [
    ...['type', 'vaulted_token', 'vault_on_success', 'parent_payment_method_type', 'detail'],
  ],
  'payments.v1.PaymentMethodDetail': ['card', 'wallet', 'bank_transfer', 'ticket'],
  'payments.v1.Card': [
    ...['verify', 'capture', 'installments', 'installments_plan_id', 'first_installment_deferral'],
    ...['installments_type', 'installment_amount', 'soft_descriptor', 'authorization_code'],
    ...['retrieval_reference_number', 'card_data', 'stored_credentials'],
  ],
  'payments.v1.CardData': [
    ...['iin', 'lfd', 'number_length', 'security_code_length', 'brand', 'issuer_name', 'issuer_code'],
    ...['country_code', 'category', 'type', 'three_d_secure'],
  ],
  'payments.v1.ThreeDSecure': ['version', 'electronic_commerce_indicator'],
  'payments.v1.StoredCredentials': WHOLE,
  'payments.v1.Wallet': [
    ...['verify', 'capture', 'installments', 'payment_method_id', 'date_of_expiration', 'money_release_date'],
    ...[
      'sponsor_id',
      'authorization_code',
      'card_data',
      'installments_plan_id',
      'first_installment_deferral',
    ],
    ...['installments_type', 'installment_amount', 'soft_descriptor', 'stored_credentials'],
  ],
  // The numbers by which a bank or a network finds the money. The payer's bank is personal.
  'payments.v1.BankTransfer': [
    ...['bank_name', 'bank_account', 'bank_account_2', 'reference', 'retrieval_reference_number'],
    ...['acquirer_reference_number', 'expires_at'],
  ],
  'payments.v1.Ticket': [
    ...['type', 'date_of_expiration', 'provider_number', 'provider_barcode', 'provider_format', 'expires_at'],
  ],
};

/** Returns a copy of a record without the payer's personal data. Idempotent. */
export function withoutPersonalData(record: Payment): Payment {
  const erased = kept(PaymentSchema, record);
  const reported = shownTransaction(erased);
  if (reported) erased.transactions = reported;
  return erased;
}

function kept<Desc extends DescMessage>(schema: Desc, message: MessageShape<Desc>): MessageShape<Desc> {
  const names = KEPT[schema.typeName] ?? [];
  if (names === WHOLE) return message;
  const copy = create(schema);
  const [from, to] = [reflect(schema, message), reflect(schema, copy)];
  for (const field of schema.fields) {
    if (!names.includes(field.name) || !from.isSet(field)) continue;
    if (field.fieldKind === 'message') to.set(field, keptOf(from.get(field)));
    else if (field.fieldKind === 'list' && field.listKind === 'message') {
      for (const item of from.get(field)) to.get(field).add(keptOf(item as ReflectMessage));
    } else to.set(field, from.get(field));
  }
  return copy;
}

function keptOf({ desc, message }: ReflectMessage): ReflectMessage {
  return reflect(desc, kept(desc, message as Message));
}
