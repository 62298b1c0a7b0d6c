-- migrate: concurrently

-- Payments by order, and by the beginning of an order: text_pattern_ops compares bytes, so that a prefix is a range in any
-- collation. It takes the place of payment_by_order, so that payments pay for one index.
CREATE INDEX CONCURRENTLY IF NOT EXISTS payment_by_order_text ON payment (account_id, merchant_order_id text_pattern_ops, created_at, id);
