-- Recovery takes due attempts by connection, so that one provider's backlog does not delay another's. The release before
-- this one searches without the connection; it reads this index whole, which holds open attempts only.
--
-- Building it scans the table, and payments wait meanwhile: a second for some millions of rows. On a larger table run
-- this statement with CREATE INDEX CONCURRENTLY before the release, and it is skipped here.
CREATE INDEX IF NOT EXISTS transaction_look_up_by_connection ON transaction (connection_id, look_up_at)
  WHERE look_up_at IS NOT NULL;

-- The account at the provider that the connection stood for when the attempt was begun: no other account is asked what
-- became of it. Null for an attempt begun by the release before this one; it is asked for as before.
ALTER TABLE transaction ADD COLUMN connection_identity text;

DROP INDEX transaction_look_up;

-- look_ups always equals fence and is no longer used. The release before this one still reads and writes it; a later
-- migration drops it.
COMMENT ON COLUMN transaction.look_ups IS 'unused since 0002, to be dropped: fence counts look-ups';
