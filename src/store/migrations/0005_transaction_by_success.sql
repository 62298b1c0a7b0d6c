-- migrate: concurrently

-- Movements of money, by the time at which they first succeeded.
CREATE INDEX CONCURRENTLY IF NOT EXISTS transaction_by_success ON transaction (account_id, succeeded_at, id)
  WHERE succeeded_at IS NOT NULL;
