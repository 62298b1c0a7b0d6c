-- migrate: concurrently
-- What is deleted when it is old is found by its age. The BRIN indexes before these told of a block only how old its
-- oldest row had ever been: once new rows had taken the place of deleted ones, they led to every block of the table.
CREATE INDEX CONCURRENTLY IF NOT EXISTS event_by_age ON event (created_at);
CREATE INDEX CONCURRENTLY IF NOT EXISTS delivery_by_age ON delivery (created_at);
CREATE INDEX CONCURRENTLY IF NOT EXISTS replayed_call_by_age ON replayed_call (created_at);
DROP INDEX CONCURRENTLY IF EXISTS event_age;
DROP INDEX CONCURRENTLY IF EXISTS delivery_age;
DROP INDEX CONCURRENTLY IF EXISTS replayed_call_age;
