-- migrate: concurrently
-- Unused since 0035: whoever looks for a payment by its id alone knows its accounts, or finds its transaction first.
DROP INDEX CONCURRENTLY IF EXISTS payment_by_id;
