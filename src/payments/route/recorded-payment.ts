import { create, type Message, type MessageInitShape } from '@bufbuild/protobuf';
import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import type { CardData, PaymentMethodInputSchema } from '#gen/payments/v1/payment_method_pb.js';
import type { Payment } from '#gen/payments/v1/payment_pb.js';
import {
  type CreatePaymentRequest,
  CreatePaymentRequestSchema,
} from '#gen/payments/v1/payment_service_pb.js';
import { passesLuhn } from '#src/luhn.ts';
import type { BinTable } from '#src/payments/method/bin-table.ts';
import type { Capable } from '#src/payments/method/features.ts';
import { expiryOf } from '#src/payments/method/local-method.ts';
import { type RequestedMethod, readMethod } from '#src/payments/method/payment-method.ts';
import { drawSeed } from '#src/routing/order-targets.ts';
import type { RoutedPayment } from './choose-route.ts';
import type { RoutingCatalogue } from './routing-catalogue.ts';
import { routingFacts } from './routing-facts.ts';

/** A stored payment, with what determined its route besides its record. */
export type RecordedPayment = {
  readonly payment: Payment;
  /** As stored, so that SPLIT draws the same. */
  readonly idempotencyKey: string;
  /** false: an authorization only. */
  readonly capture: boolean;
  /** The kind of its method; undefined if unknown. */
  readonly methodKind: string | undefined;
  /** undefined if the merchant sent none. */
  readonly merchantReference: string | undefined;
};

/**
 * Rebuilds a stored payment as it was made, for any catalogue: at the time, with the facts and under the key that it had.
 * Two things are in no record, and presumed: a security code that came with a stored card, and that no 3-D Secure setup
 * was asked for.
 *
 * @param sentBy what connections can do: it tells whether a local method has the expiry that it has by default.
 * @returns a function that reads the payment by a catalogue. It throws ServiceError as for a payment, if the catalogue does
 * not offer the method.
 */
export function asRecorded(
  recorded: RecordedPayment,
  sentBy: Capable,
): (catalogue: Pick<RoutingCatalogue, 'types' | 'bins'>) => RoutedPayment {
  const { payment, idempotencyKey } = recorded;
  const { createdAt } = payment;
  if (!createdAt) throw new Error('a stored payment has no time');
  const request = requestOf(recorded, createdAt, sentBy);
  const seed = drawSeed(payment.accountId, idempotencyKey);
  return ({ types, bins }) => {
    const method = enrolledWhereItWent(readMethod(request, undefined, types), recorded);
    return { request, method, seed, facts: routingFacts(request, method, cardOf(payment, bins), createdAt) };
  };
}

/** Rebuilds the request of a payment, with stand-ins for what no record contains. */
function requestOf(recorded: RecordedPayment, createdAt: Timestamp, sentBy: Capable): CreatePaymentRequest {
  const { payment, merchantReference = '' } = recorded;
  const { accountId, merchantOrderId, country, amount, workflow, checkout, customerPayer } = payment;
  const { additionalData } = payment;
  return create(CreatePaymentRequestSchema, {
    ...{ accountId, merchantOrderId, merchantReference, country, workflow },
    amount: { currency: amount?.currency ?? '', ...(amount?.value && { value: amount.value }) },
    paymentMethod: methodOf(recorded, createdAt, sentBy),
    checkout: { session: checkout?.session ?? '' },
    ...(customerPayer && { customerPayer }),
    ...(additionalData && { additionalData }),
  });
}

type MethodInit = Exclude<MessageInitShape<typeof PaymentMethodInputSchema>, Message>;

function methodOf(
  { payment, capture, methodKind }: RecordedPayment,
  createdAt: Timestamp,
  connections: Capable,
): MethodInit {
  const { type = '', paymentMethodDetail } = payment.paymentMethod ?? {};
  const kind = paymentMethodDetail?.kind;
  const vaultedToken = sentToken(payment);
  const local = connections.get(firstConnection(payment))?.capabilities.localMethods[type];
  const defaultMs = local && expiryOf(local, undefined, timestampMs(createdAt));
  /** Returns the expiry that the merchant asked for: one that is not the default. */
  const expiry = (expiresAt: Timestamp | undefined) =>
    expiresAt && timestampMs(expiresAt) !== defaultMs ? { expiresAt } : {};
  switch (kind?.case) {
    case 'card': {
      const { cardData, installments, verify, storedCredentials } = kind.value;
      const sent = { ...STAND_IN, number: standInNumber(cardData?.iin ?? '', cardData?.numberLength ?? 16) };
      const value = {
        ...{ capture, installments, verify },
        cardData: vaultedToken
          ? { securityCode: '000' }
          : { ...sent, securityCode: '0'.repeat(cardData?.securityCodeLength ?? 0) },
        ...(cardData?.threeDSecure && { threeDSecure: given(cardData.threeDSecure) }),
        ...(storedCredentials && { storedCredentials: given(storedCredentials) }),
      };
      return { type, vaultedToken, detail: { kind: { case: 'card', value } } };
    }
    case 'bankTransfer': {
      const { bankId = '', accountType = '', expiresAt } = kind.value;
      const value = { bankId, accountType, ...expiry(expiresAt) };
      return { type, detail: { kind: { case: 'bankTransfer', value } } };
    }
    case 'ticket':
      return { type, detail: { kind: { case: 'ticket', value: expiry(kind.value.expiresAt) } } };
    default: {
      if (methodKind !== 'CARD') return { type, vaultedToken };
      const { verify = false, installments, storedCredentials } = kind?.value ?? {};
      const value = {
        ...{ paymentToken: '{}', capture, verify, installments: installments ?? 1 },
        ...(storedCredentials && { storedCredentials: given(storedCredentials) }),
      };
      return { type, detail: { kind: { case: 'wallet', value } } };
    }
  }
}

/** Returns the id of the connection of a payment's first attempt. */
function firstConnection({ transactionsHistory: [first] }: Payment): string {
  return first?.connectionData?.id ?? '';
}

/** Returns the stored method that a payment was made with; '' if there was none, or it was stored by this payment. */
function sentToken({ paymentMethod }: Payment): string {
  const { vaultedToken = '', vaultOnSuccess, paymentMethodDetail } = paymentMethod ?? {};
  const kind = paymentMethodDetail?.kind;
  // A card that was stored before has no security code in the record.
  const hasCode = kind?.case === 'card' && kind.value.cardData?.securityCodeLength;
  return vaultOnSuccess && hasCode ? '' : vaultedToken;
}

/** Returns the texts of a recorded message, for the message of a request with the same fields. */
function given(message: Message): Record<string, string> {
  return Object.fromEntries(
    Object.entries(message).filter((entry): entry is [string, string] => {
      const [name, value] = entry as [string, unknown];
      return !name.startsWith('$') && typeof value === 'string';
    }),
  );
}

/** An enrolled wallet went to the only connection that can charge it: the one that enrolled it. */
function enrolledWhereItWent(method: RequestedMethod, { payment }: RecordedPayment): RequestedMethod {
  const isEnrolled = method.by === 'wallet' && sentToken(payment) !== '';
  return isEnrolled ? { ...method, enrolled: { at: firstConnection(payment), token: '' } } : method;
}

const WHOLE_IIN = 8;

/**
 * Returns the displayable data of a payment's card. A new card's issuer is the catalogue's word; a stored card keeps its
 * own.
 */
function cardOf(payment: Payment, bins: BinTable): CardData | undefined {
  const kind = payment.paymentMethod?.paymentMethodDetail?.kind;
  const data = kind?.case === 'card' ? kind.value.cardData : undefined;
  if (!data || sentToken(payment) !== '') return data;
  const bin = bins(data.iin);
  // The entry for a short card number may have more digits than its record shows.
  if (!bin && data.iin.length < WHOLE_IIN) return data;
  const { countryCode, type } = bin ?? { countryCode: '', type: '' };
  return { ...data, countryCode, type };
}

/** Placeholders for values that no condition uses. */
const STAND_IN = { expirationMonth: 12, expirationYear: 99, holderName: 'STAND IN' };

/**
 * Makes up a card number for routing: the issuer's digits, zeros and a check digit.
 *
 * @param iin first digits of the card, usually 1 to 8.
 */
export function standInNumber(iin: string, length = 16): string {
  const start = iin.padEnd(Math.max(length, 12) - 1, '0');
  for (let check = 0; check <= 9; check++) if (passesLuhn(start + check)) return start + check;
  return start;
}
