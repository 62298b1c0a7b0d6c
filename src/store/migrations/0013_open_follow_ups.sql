-- migrate: concurrently
-- What is open after its call, by type, so that it is counted without a look at authorizations that wait for days.
CREATE INDEX CONCURRENTLY IF NOT EXISTS transaction_open_follow_up ON transaction (type, created_at)
  WHERE follow_up_at IS NOT NULL AND status IN ('CREATED', 'PENDING');
