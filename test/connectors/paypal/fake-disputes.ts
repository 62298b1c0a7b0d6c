import type { Json } from './fake-ledger.ts';

/** A capture that the fake does not have. */
export const DISPUTED_CAPTURE = '00D10444LD479031K';

/** An event of a dispute, as PayPal's documentation shows it. */
export function disputeEvent(over: Json, type = 'CUSTOMER.DISPUTE.CREATED', id = 'WH-dispute-1'): Json {
  return {
    id,
    event_version: '1.0',
    resource_type: 'dispute',
    event_type: type,
    summary: 'A new dispute opened with Case # PP-D-4012',
    resource: {
      dispute_id: 'PP-D-4012',
      create_time: '2026-11-20T13:35:44.000Z',
      update_time: '2026-11-20T13:35:44.000Z',
      reason: 'MERCHANDISE_OR_SERVICE_NOT_RECEIVED',
      status: 'OPEN',
      dispute_amount: { currency_code: 'USD', value: '30.00' },
      dispute_life_cycle_stage: 'INQUIRY',
      dispute_channel: 'INTERNAL',
      disputed_transactions: [{ seller_transaction_id: DISPUTED_CAPTURE, items: [] }],
      messages: [{ posted_by: 'BUYER', content: 'where is it?' }],
      ...over,
    },
  };
}
