-- migrate: concurrently
-- One index for each filter of ListPayments, in the order of its pages.
CREATE INDEX CONCURRENTLY IF NOT EXISTS payment_by_time ON payment (account_id, created_at, id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS payment_by_status ON payment (account_id, status, created_at, id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS payment_by_order ON payment (account_id, merchant_order_id, created_at, id)
  WHERE merchant_order_id IS NOT NULL;
-- The payments whose order has yet to be filled in; empty once that is done.
CREATE INDEX CONCURRENTLY IF NOT EXISTS payment_without_order ON payment (account_id, id)
  WHERE merchant_order_id IS NULL;
