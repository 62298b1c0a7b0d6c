-- What payments are listed by. Null for a payment of the release before this one, until a replica of this one has filled
-- it in from the record (src/payments/backfill-payments.ts).
ALTER TABLE payment ADD COLUMN merchant_order_id text;
