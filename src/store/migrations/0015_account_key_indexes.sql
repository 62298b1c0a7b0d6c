-- migrate: concurrently
-- The account leads every primary key, so that the schema can be distributed by account. The indexes are built here, while
-- payments go on, and become the keys in the files that follow. The release before this one looks rows up by id alone, and
-- so do look-ups of what names no account (a payer who comes back, a provider's notification): those have their own.
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS payment_key ON payment (account_id, id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS payment_by_id ON payment (id);
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS transaction_key ON transaction (account_id, id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS transaction_by_id ON transaction (id);
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS checkout_session_key ON checkout_session (account_id, id);
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS customer_key ON customer (account_id, id);
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS vaulted_token_key ON vaulted_token (account_id, id);
CREATE INDEX CONCURRENTLY IF NOT EXISTS vaulted_token_by_id ON vaulted_token (id);
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS secret_key_key ON secret_key (account_id, id);
