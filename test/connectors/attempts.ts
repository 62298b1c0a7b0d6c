import { randomUUID } from 'node:crypto';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { AdditionalDataSchema } from '#gen/payments/v1/additional_data_pb.js';
import { CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import {
  type CardOptions,
  chargesCard,
  kindOf,
  type LocalMethodOfPayer,
  type Method,
  type PaymentAttempt,
} from '#src/connectors/port/attempt.ts';
import type { CaptureOperation, LookUp, Operation } from '#src/connectors/port/connector.ts';
import { Secret } from '#src/secret.ts';

export const SECURITY_CODE = '987';

/** Options of a plain card purchase. */
export const CARD_OPTIONS: CardOptions = {
  capture: true,
  verify: false,
  installments: 1,
  threeDSecureSetupId: undefined,
  threeDSecure: undefined,
  storedCredentials: undefined,
  softDescriptor: '',
};

/** A card attempt, approved by default. */
export function cardAttempt(
  number = '4111111111111111',
  over: Partial<PaymentAttempt> = {},
  { holderName = 'Ana Gómez', ...options }: Partial<CardOptions & { holderName: string }> = {},
): PaymentAttempt {
  return attemptBy(
    {
      ...{ by: 'card', type: 'CARD' },
      card: {
        number: new Secret(number),
        securityCode: new Secret(SECURITY_CODE),
        holderName,
        expirationMonth: 12,
        expirationYear: 30,
      },
      ...CARD_OPTIONS,
      ...options,
    },
    over,
  );
}

/** An attempt that verifies a card and charges nothing. */
export function verificationAttempt(number?: string): PaymentAttempt {
  const money = { minorUnits: 0n, currency: 'USD' };
  return cardAttempt(number, { money }, { verify: true, capture: false });
}

/** An attempt that the payer completes on the provider's page. */
export function redirectAttempt(over: Partial<PaymentAttempt> = {}): PaymentAttempt {
  return attemptBy({ by: 'payer', type: 'WALLET_B', show: 'page' }, over);
}

/** An attempt with a wallet that the payer enrolled earlier. */
export function enrollmentAttempt(over: Partial<PaymentAttempt> = {}): PaymentAttempt {
  return attemptBy(
    {
      ...{ by: 'wallet', type: 'WALLET_C_ENROLLMENT', cardType: 'CREDIT' },
      enrolled: { at: 'sandbox-one', token: 'wallet-token' },
    },
    over,
  );
}

/** An attempt with a local method. @param over the method's own data, and that of the attempt. */
export function localAttempt(
  { type, category = 'BANK_TRANSFER', bankId = '', accountType }: LocalOptions,
  over: Partial<PaymentAttempt> = {},
): PaymentAttempt {
  const wantedExpiryMs = over.expiresAtMs;
  const method = {
    by: 'payer',
    type,
    show: 'instructions',
    category,
    wantedExpiryMs,
    bankId,
    accountType,
  } as const;
  return attemptBy(method, over);
}

type LocalOptions = Pick<LocalMethodOfPayer, 'type'> &
  Partial<Pick<LocalMethodOfPayer, 'category' | 'bankId' | 'accountType'>>;

/** An attempt with the token of a wallet. @param token a JSON object as text. */
export function tokenAttempt(
  type: string,
  token: string,
  over: Partial<PaymentAttempt> = {},
  options: Partial<CardOptions> = {},
): PaymentAttempt {
  const method = { by: 'wallet_token', type, token: new Secret(token), lastFour: '' } as const;
  return attemptBy({ ...method, ...CARD_OPTIONS, ...options }, over);
}

export function additionalData(init: MessageInitShape<typeof AdditionalDataSchema>) {
  return create(AdditionalDataSchema, init);
}

function attemptBy(method: Method, over: Partial<PaymentAttempt>): PaymentAttempt {
  return {
    transactionId: randomUUID(),
    paymentId: randomUUID(),
    money: { minorUnits: 300_000n, currency: 'USD' },
    createdAtMs: Date.UTC(2029, 11, 29, 12),
    description: 'Two nights in Bogotá',
    merchantOrderId: 'order-1',
    merchantReference: 'reference-1',
    country: 'CO',
    returnUrl: 'https://payments.example/v1/payments/1/return',
    cancelUrl: 'https://payments.example/v1/payments/1/return/canceled',
    notificationUrl: 'https://payments.example/v1/providers/one/notifications',
    expiresAtMs: Date.UTC(2030, 0, 1),
    customerPayer: create(CustomerPayerSchema, { firstName: 'Ana', email: 'ana@example.com' }),
    additionalData: undefined,
    taxes: undefined,
    metadata: [],
    method,
    ...over,
  };
}

/** A capture, a cancel or a refund of an attempt's payment. */
export function operationOn(
  attempt: PaymentAttempt,
  reference: string | undefined,
  over: Partial<CaptureOperation> = {},
): CaptureOperation {
  const { transactionId, money } = attempt;
  const payment = { transactionId, reference, money };
  return {
    transactionId: randomUUID(),
    money,
    isWhole: true,
    isFinal: false,
    merchantReference: 'operation-1',
    description: '',
    reason: undefined,
    payment,
    target: payment,
    ...over,
  };
}

const JUST_SENT = { ageMs: 0, close: false } as const;
const DAY_MS = 86_400_000;

/** A look-up of an operation. @param claimed references of the payment's other transactions. */
export function lookUpOfOperation(
  kind: 'capture' | 'cancel' | 'refund',
  operation: Operation,
  over: Partial<LookUp> = {},
  claimed: readonly string[] = [],
): LookUp {
  const { transactionId, money, merchantReference, description, reason, payment, target } = operation;
  const of = { kind, merchantReference, description, reason, payment, target, claimed };
  const asked = {
    transactionId,
    money,
    reference: undefined,
    ...JUST_SENT,
    payerTimeLeftMs: Number.POSITIVE_INFINITY,
  };
  return { ...asked, of, ...over };
}

/** A look-up of an attempt. */
export function lookUpOf(attempt: PaymentAttempt, over: Partial<LookUp> = {}): LookUp {
  const { method, ...facts } = attempt;
  const of = chargesCard(method)
    ? {
        kind: 'CARD' as const,
        capture: method.capture,
        verify: method.verify,
        softDescriptor: method.softDescriptor,
        attempt: facts,
      }
    : { kind: kindOf(method) as 'WALLET', type: method.type, attempt: facts };
  const { transactionId, money } = attempt;
  const asked = { transactionId, money, reference: undefined, ...JUST_SENT, payerTimeLeftMs: DAY_MS };
  return { ...asked, of, ...over };
}
