-- migrate: concurrently
-- Unused since 0021, whose payment_to_fill_in holds the same payments.
DROP INDEX CONCURRENTLY IF EXISTS payment_without_order;
