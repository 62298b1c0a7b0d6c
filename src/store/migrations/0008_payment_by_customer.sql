-- migrate: concurrently

-- A stored customer's payments.
CREATE INDEX CONCURRENTLY IF NOT EXISTS payment_by_customer ON payment (account_id, customer_id, created_at, id)
  WHERE customer_id IS NOT NULL;
