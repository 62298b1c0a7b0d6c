-- What the dashboard finds payments by. Null for a payment of the release before this one, until a replica of this one has
-- filled it in from the record (src/payments/backfill-payments.ts); '' for one without a card.
ALTER TABLE payment ADD COLUMN card_last_four text;
-- Null where the merchant gave none, and for a transaction of the release before this one.
ALTER TABLE transaction ADD COLUMN merchant_reference text;

-- Operators who have signed in to the dashboard. They are of the installation, not of an account.
CREATE TABLE operator_session (
  -- SHA-256 of the token in the cookie: who reads this table cannot become anybody.
  token_hash bytea PRIMARY KEY CHECK (length(token_hash) = 32),
  -- Names the operator key, as `operator-` and the first digits of its SHA-256.
  actor text NOT NULL,
  -- SHA-256 of the operator key: a key that is no longer configured ends its sessions.
  key_hash bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  seen_at timestamptz NOT NULL DEFAULT now()
);
