-- migrate: concurrently
CREATE INDEX CONCURRENTLY IF NOT EXISTS vaulted_token_to_follow ON vaulted_token (follow_up_at)
  WHERE follow_up_at IS NOT NULL;
