-- migrate: concurrently

-- The dashboard's search by method. Without cards, which are found by time: they are most payments of most accounts, and
-- pay for no index.
CREATE INDEX CONCURRENTLY IF NOT EXISTS payment_by_method ON payment (account_id, method_type, created_at, id)
  WHERE method_type <> 'CARD';
