import { EVENT_TYPES, TEST_EVENT_TYPE } from '#src/webhooks/events.ts';
import type { Json } from './field-rules.ts';

const header = (name: string, description: string, required = true): Json => ({
  name,
  in: 'header',
  required,
  description,
  schema: { type: 'string' },
});

/** The request that a merchant's server receives for each event. */
export const EVENT_WEBHOOK: Json = {
  post: {
    operationId: 'receiveEvent',
    tags: ['Webhooks'],
    summary: 'An event is delivered to your server',
    description:
      'Signed as [Standard Webhooks](https://www.standardwebhooks.com) describes. Respond with a 2xx status within 10 ' +
      'seconds; otherwise the event is sent again. An event may come late, or twice with the same `webhook-id`.',
    security: [],
    parameters: [
      header('webhook-id', 'The event id, the same each time the event is sent.'),
      header('webhook-timestamp', 'Time of sending, in seconds since 1970.'),
      header('webhook-signature', 'Signatures of id, timestamp and body, separated by spaces.'),
      header('x-api-key', "The webhook's `credentials.api_key`.", false),
      header('x-secret', "The webhook's `credentials.secret`.", false),
      header(
        'x-hmac-signature',
        'HMAC-SHA256 of the raw body with the key `credentials.hmac_key`, in base64.',
        false,
      ),
    ],
    requestBody: {
      required: true,
      content: { 'application/json': { schema: { $ref: '#/components/schemas/Event' } } },
    },
    responses: {
      '2XX': { description: 'Delivered.' },
      410: { description: 'Turns the webhook off.' },
      default: { description: 'Sent again later.' },
    },
  },
};

/** Members of a payment that are present only in events. */
const PAYMENT_IN_EVENT: Json = {
  type: 'object',
  properties: {
    order_id: { type: 'string', description: 'The same as `merchant_order_id`.' },
    idempotency_key: {
      type: 'string',
      description: 'The `x-idempotency-key` of the call that made the payment.',
    },
  },
  required: ['order_id', 'idempotency_key'],
};

/** The body of an event, as src/webhooks/deliver.ts writes it. */
export const EVENT_SCHEMA: Json = {
  type: 'object',
  description: 'A change to a payment, a dispute or a stored payment method.',
  properties: {
    id: { type: 'string', format: 'uuid', description: 'The same as the header `webhook-id`.' },
    type: { type: 'string', description: 'First part of `type_event`.' },
    type_event: {
      type: 'string',
      enum: [...EVENT_TYPES, TEST_EVENT_TYPE],
      description: 'Name of the event.',
    },
    account_id: { type: 'string', description: 'The merchant account, a UUID.' },
    version: { type: 'integer', const: 2, description: 'Version of the body.' },
    retry: { type: 'integer', minimum: 0, description: 'Number of earlier attempts to deliver the event.' },
    timestamp: { type: 'string', format: 'date-time', description: 'When the event happened.' },
    sequence: {
      type: 'integer',
      description: 'Counts the changes to a payment; with `dispute.…`, to a dispute.',
    },
    data: {
      type: 'object',
      description: `\`payment_method\` with \`enrollment.…\`, \`dispute\` and \`payment\` with \`dispute.…\`, empty with \`${TEST_EVENT_TYPE}\`, else \`payment\`.`,
      properties: {
        payment: {
          allOf: [{ $ref: '#/components/schemas/Payment' }, PAYMENT_IN_EVENT],
          description: 'The record after the change.',
        },
        dispute: {
          $ref: '#/components/schemas/Dispute',
          description: 'The dispute after the change.',
        },
        payment_method: {
          $ref: '#/components/schemas/StoredPaymentMethod',
          description: 'The stored method after the change.',
        },
      },
    },
  },
  required: ['id', 'type', 'type_event', 'account_id', 'version', 'retry', 'timestamp', 'sequence', 'data'],
};
