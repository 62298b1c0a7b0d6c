-- Transactions that go on after their call: operations that are open, redirects and challenges that wait for the payer, and
-- authorizations that lapse. They have a schedule of their own, beside look_up_at, so that the release before this one,
-- which knows purchases only, never takes one of them. Its index follows in 0010.
ALTER TABLE transaction ADD COLUMN follow_up_at timestamptz;

-- What providers told us, as it came: stored before it is answered, processed after.
CREATE TABLE notification (
  -- The nil UUID until the transaction that it is about is found.
  account_id uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
  connection_id text NOT NULL,
  -- The same for every delivery of one notification.
  deduplication_key text COLLATE "C" NOT NULL,
  -- One notification may be about several transactions.
  subject integer NOT NULL,
  -- Ours, or the provider's own; one of them is there.
  transaction_id uuid,
  reference text,
  dispute text,
  body bytea NOT NULL,
  query text NOT NULL,
  received_at timestamptz NOT NULL DEFAULT now(),
  -- When it is processed next; null once it was.
  process_at timestamptz DEFAULT now(),
  tries integer NOT NULL DEFAULT 0,
  -- What came of it: applied, unchanged, unmatched.
  result text,
  PRIMARY KEY (account_id, connection_id, deduplication_key, subject)
);
CREATE INDEX notification_due ON notification (process_at) WHERE process_at IS NOT NULL;
