-- migrate: concurrently
-- Finds the failed deliveries of a webhook among the millions that were delivered, to send them again.
CREATE INDEX CONCURRENTLY IF NOT EXISTS delivery_failed ON delivery (account_id, webhook_id, id) WHERE status = 'FAILED';
