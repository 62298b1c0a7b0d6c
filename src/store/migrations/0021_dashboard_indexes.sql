-- migrate: concurrently
CREATE INDEX CONCURRENTLY IF NOT EXISTS payment_by_last_four ON payment (account_id, card_last_four, created_at, id)
  WHERE card_last_four <> '';
-- The payments whose search columns have yet to be filled in; empty once that is done.
CREATE INDEX CONCURRENTLY IF NOT EXISTS payment_to_fill_in ON payment (account_id, id) WHERE card_last_four IS NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS transaction_by_merchant_reference ON transaction (account_id, merchant_reference)
  WHERE merchant_reference IS NOT NULL;
-- A payment's story: what providers told of its transactions, and what its merchant was told.
CREATE INDEX CONCURRENTLY IF NOT EXISTS notification_of_transaction ON notification (account_id, transaction_id)
  WHERE transaction_id IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS event_of_payment ON event (account_id, payment_id, sequence);
CREATE INDEX CONCURRENTLY IF NOT EXISTS delivery_of_event ON delivery (account_id, event_id);
