import type { CustomerPayer } from '#gen/payments/v1/customer_payer_pb.js';

/** A wallet that its payer is asked to let the merchant charge later. No money moves. */
export type WalletEnrollment = {
  /** Our stored method's id (UUID): the provider's idempotency key, and what the outcome is looked up by. */
  readonly enrollmentId: string;
  /** payment_method.type. */
  readonly type: string;
  /** ISO 3166-1 alpha-2; '' when it is not known. */
  readonly country: string;
  readonly customerPayer: CustomerPayer;
  /** Our own address to which the provider sends the payer back: `…/v1/enrollments/{id}/return`. */
  readonly returnUrl: string;
  /** Our own address for the connection's notifications. */
  readonly notificationUrl: string;
  /** Time after which the payer can no longer agree, in milliseconds since the epoch. */
  readonly expiresAtMs: number;
};
