-- migrate: concurrently
-- One index for each filter of ListPayments, in the order of its pages.
CREATE INDEX CONCURRENTLY IF NOT EXISTS payment_by_time ON payment (account_id, created_at, id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS payment_by_status ON payment (account_id, status, created_at, id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS payment_by_order ON payment (account_id, merchant_order_id, created_at, id)
  WHERE merchant_order_id IS NOT NULL;
-- The payments whose order has yet to be filled in; empty once that is done.
CREATE INDEX CONCURRENTLY IF NOT EXISTS payment_without_order ON payment (account_id, id)
  WHERE merchant_order_id IS NULL;
-- The idempotency keys of operations, a payment's transactions, and those that are due or that a provider tells of.
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS transaction_operation_key ON transaction (account_id, method, idempotency_key)
  WHERE idempotency_key IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS transaction_payment ON transaction (payment_id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS transaction_follow_up ON transaction (connection_id, follow_up_at)
  WHERE follow_up_at IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS transaction_reference ON transaction (connection_id, reference)
  WHERE reference IS NOT NULL;
