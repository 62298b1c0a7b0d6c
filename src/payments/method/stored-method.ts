import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { CardDataSchema } from '#gen/payments/v1/payment_method_pb.js';
import {
  type StoredPaymentMethod,
  StoredPaymentMethod_Status,
  StoredPaymentMethodSchema,
} from '#gen/payments/v1/payment_method_service_pb.js';
import type { Payment } from '#gen/payments/v1/payment_pb.js';
import type { StoredMethod } from '#src/store/tables/stored-methods.ts';
import { timestampText } from '#src/wire/wire-json-encode.ts';
import { cardName } from './card.ts';

/** Returns a stored method as shown to merchants. */
export function storedMethodMessage(method: StoredMethod): StoredPaymentMethod {
  const { id, accountId, customerId, type, country, lastUsedAt } = method;
  const card = method.card && fromBinary(CardDataSchema, method.card);
  const isCard = type === 'CARD';
  return create(StoredPaymentMethodSchema, {
    ...{ id, vaultedToken: id, accountId, customerId, type, country },
    name: card ? cardName(card) : type,
    category: isCard ? 'CARD' : 'WALLET',
    status: StoredPaymentMethod_Status[method.status],
    // Shown once a provider has approved the card, as in payments.
    cardData: card && { ...card, fingerprint: lastUsedAt ? (method.fingerprint ?? '') : '' },
    redirectUrl: method.redirectUrl ?? '',
    createdAt: timestampFromDate(method.createdAt),
    updatedAt: timestampFromDate(method.updatedAt),
    lastSuccessfullyUsedAt: lastUsedAt && timestampFromDate(lastUsedAt),
  });
}

/**
 * Encodes the method that an approved payment stored for its customer, for the event that reports it; undefined if the
 * payment did not request to store its card, or has no customer.
 */
export function enrolledByPayment(record: Payment, token: string, at: Date): Uint8Array | undefined {
  const { paymentMethod, customerPayer, createdAt } = record;
  const kind = paymentMethod?.paymentMethodDetail?.kind;
  const customerId = customerPayer?.id;
  if (!paymentMethod?.vaultOnSuccess || !customerId || !createdAt || kind?.case !== 'card') return undefined;
  const { cardData } = kind.value;
  const message = storedMethodMessage({
    ...{ accountId: record.accountId, customerId, id: token, type: paymentMethod.type },
    status: 'ENROLLED',
    country: record.country,
    card: cardData && toBinary(CardDataSchema, { ...cardData, securityCodeLength: 0 }),
    fingerprint: cardData?.fingerprint,
    redirectUrl: undefined,
    // In whole milliseconds, like the stored row.
    createdAt: new Date(timestampText(createdAt)),
    updatedAt: at,
    lastUsedAt: at,
  });
  return toBinary(StoredPaymentMethodSchema, message);
}
