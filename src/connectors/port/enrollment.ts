import type { CustomerPayer } from '#gen/payments/v1/customer_payer_pb.js';

/** A request for the payer's consent to charge a wallet later. No money moves. */
export type WalletEnrollment = {
  /** Our stored method's id (UUID): the provider's idempotency key, and the key for looking up the outcome. */
  readonly enrollmentId: string;
  /** payment_method.type. */
  readonly type: string;
  /** ISO 3166-1 alpha-2; '' if unknown. */
  readonly country: string;
  readonly customerPayer: CustomerPayer;
  /** Our own URL to which the provider sends the payer back: `…/v1/enrollments/{id}/return`. */
  readonly returnUrl: string;
  /** Our own URL for the connection's notifications. */
  readonly notificationUrl: string;
  /** Time after which the payer can no longer agree, in milliseconds since the epoch. */
  readonly expiresAtMs: number;
};
