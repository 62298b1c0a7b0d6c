-- migrate: concurrently
-- Open notifications by connection, so that those of a busy one are passed over in one step, and by transaction, in the
-- order in which a look-up settles them. Worded as in that statement, so that no other index seems to serve it.
-- The release before finds the due ones by notification_due; the next release may drop it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS notification_due_of_connection ON notification (connection_id, process_at)
  WHERE process_at IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS notification_open_of_transaction ON notification
  (account_id, transaction_id, deduplication_key, subject) WHERE num_nonnulls(process_at) = 1;
