-- migrate: concurrently
-- Retention finds these, too, by their age.
CREATE INDEX CONCURRENTLY IF NOT EXISTS notification_by_age ON notification (received_at);
CREATE INDEX CONCURRENTLY IF NOT EXISTS vaulted_token_ended_by_age ON vaulted_token (updated_at)
  WHERE status IN ('UNENROLLED', 'DECLINED', 'EXPIRED');
