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
      dispute_life_cycle_stage: 'CHARGEBACK',
      dispute_channel: 'INTERNAL',
      disputed_transactions: [{ seller_transaction_id: DISPUTED_CAPTURE, items: [] }],
      messages: [{ posted_by: 'BUYER', content: 'where is it?' }],
      ...over,
    },
  };
}

/** An event of a reversal: its resource is a refund that links to its capture. */
export function reversalEvent(captureId: string, over: Json = {}, id = 'WH-reversal-1'): Json {
  const href = `https://api.paypal.com/v2/payments/captures/${captureId}`;
  return {
    id,
    resource_type: 'refund',
    event_type: 'PAYMENT.CAPTURE.REVERSED',
    summary: 'A $ 30.00 USD capture payment was reversed',
    resource: {
      id: '09E71677NS257044M',
      status: 'COMPLETED',
      amount: { currency_code: 'USD', value: '30.00' },
      links: [
        { href: 'https://api.paypal.com/v2/payments/refunds/09E71677NS257044M', rel: 'self' },
        { href, rel: 'up' },
      ],
      ...over,
    },
  };
}

/** Fields of a resolved dispute. */
export function resolved(outcome_code: unknown, over: Json = {}): Json {
  return { status: 'RESOLVED', dispute_outcome: { outcome_code, ...over } };
}

/** An amount as PayPal writes it. */
export function usd(value: unknown): Json {
  return { currency_code: 'USD', value };
}
