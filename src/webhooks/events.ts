/** Types of events that webhooks can subscribe to. */
export const EVENT_TYPES = [
  'payment.purchase',
  'payment.authorize',
  'payment.capture',
  'payment.cancel',
  'payment.refund',
  'payment.verify',
  'payment.expired',
  'payment.chargeback',
  'dispute.opened',
  'dispute.updated',
  'dispute.closed',
  'enrollment.ready',
  'enrollment.enroll',
  'enrollment.declined',
  'enrollment.expired',
  'enrollment.unenroll',
] as const;

/** The event that TestWebhook sends, to any webhook. */
export const TEST_EVENT_TYPE = 'webhook.test';
