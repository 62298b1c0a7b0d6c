-- What a provider's reports and our record say differently. A row is never deleted.
CREATE TABLE settlement_difference (
  -- The transaction's; the nil UUID for a line of an unknown payment, and for a payout.
  account_id uuid NOT NULL,
  connection_identity text NOT NULL,
  kind text NOT NULL,
  -- The transaction's id, the line's key, or the payout's reference and currency.
  subject text COLLATE "C" NOT NULL,
  connection_id text NOT NULL,
  payment_id uuid,
  -- The amounts, in words.
  detail text NOT NULL CHECK (length(detail) <= 500),
  opened_at timestamptz NOT NULL DEFAULT now(),
  -- When later lines, or the transaction, explained it; null as long as it is there.
  ended_at timestamptz,
  -- An operator's decision, which a change of the detail undoes; null while it is open.
  resolved_at timestamptz,
  resolved_by text CHECK (length(resolved_by) <= 600),
  note text NOT NULL DEFAULT '' CHECK (length(note) <= 1000),
  PRIMARY KEY (account_id, connection_identity, kind, subject)
);
CREATE INDEX settlement_difference_open ON settlement_difference (connection_identity, opened_at)
  WHERE ended_at IS NULL;
