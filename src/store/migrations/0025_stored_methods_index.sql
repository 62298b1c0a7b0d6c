-- migrate: concurrently
CREATE INDEX CONCURRENTLY IF NOT EXISTS vaulted_token_of_customer ON vaulted_token (account_id, customer_id, id)
  WHERE customer_id IS NOT NULL;
