-- migrate: concurrently

-- Statements of earlier releases, which ask for one order, are served by payment_by_order_text.
DROP INDEX CONCURRENTLY IF EXISTS payment_by_order;
