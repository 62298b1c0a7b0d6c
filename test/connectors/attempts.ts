import { randomUUID } from 'node:crypto';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { AdditionalDataSchema } from '#gen/payments/v1/additional_data_pb.js';
import { CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import type { AttemptMethod, PaymentAttempt } from '#src/connectors/connector.ts';
import { Secret } from '#src/secret.ts';

export const SECURITY_CODE = '987';

/** An attempt by card, approved by default. */
export function cardAttempt(number = '4111111111111111', over: Partial<PaymentAttempt> = {}): PaymentAttempt {
  return attemptBy(
    {
      kind: 'card',
      card: {
        number: new Secret(number),
        securityCode: new Secret(SECURITY_CODE),
        holderName: 'Ana Gómez',
        expirationMonth: 12,
        expirationYear: 30,
      },
      capture: true,
      installments: 1,
      threeDSecureSetupId: undefined,
    },
    over,
  );
}

/** An attempt that the payer completes at the provider's page. */
export function redirectAttempt(over: Partial<PaymentAttempt> = {}): PaymentAttempt {
  return attemptBy({ kind: 'wallet_redirect', type: 'WALLET_B' }, over);
}

/** An attempt by a wallet that the payer enrolled earlier. */
export function enrollmentAttempt(over: Partial<PaymentAttempt> = {}): PaymentAttempt {
  return attemptBy(
    { kind: 'wallet_enrollment', type: 'WALLET_C_ENROLLMENT', token: 'wallet-token', cardType: 'CREDIT' },
    over,
  );
}

export function additionalData(init: MessageInitShape<typeof AdditionalDataSchema>) {
  return create(AdditionalDataSchema, init);
}

function attemptBy(method: AttemptMethod, over: Partial<PaymentAttempt>): PaymentAttempt {
  return {
    transactionId: randomUUID(),
    paymentId: randomUUID(),
    money: { minorUnits: 300_000n, currency: 'USD' },
    description: 'Two nights in Bogotá',
    merchantOrderId: 'order-1',
    merchantReference: 'reference-1',
    country: 'CO',
    callbackUrl: undefined,
    customerPayer: create(CustomerPayerSchema, { firstName: 'Ana', email: 'ana@example.com' }),
    additionalData: undefined,
    method,
    ...over,
  };
}
