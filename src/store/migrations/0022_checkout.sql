-- Checkout sessions that merchants make: one payment each, until expires_at. Those that were there have no terms (expires_at
-- is null); any number of payments may refer to them.
ALTER TABLE checkout_session
  ADD COLUMN merchant_order_id text NOT NULL DEFAULT '',
  ADD COLUMN payment_description text NOT NULL DEFAULT '',
  ADD COLUMN country text NOT NULL DEFAULT '',
  ADD COLUMN currency text NOT NULL DEFAULT '',
  ADD COLUMN amount_minor_units bigint NOT NULL DEFAULT 0,
  ADD COLUMN callback_url text,
  -- A JSON array of objects with `key` and `value`.
  ADD COLUMN metadata text NOT NULL DEFAULT '[]',
  -- payments.v1.Payment.Workflow of its payments that name none.
  ADD COLUMN workflow text NOT NULL DEFAULT '',
  ADD COLUMN expires_at timestamptz,
  -- Counts the changes of its terms: a payment made by other terms is not claimed.
  ADD COLUMN version integer NOT NULL DEFAULT 0,
  -- The last payment that was made for it, declined ones included.
  ADD COLUMN payment_id uuid,
  ADD COLUMN updated_at timestamptz NOT NULL DEFAULT now();

-- What one payment only may use: its key is the claim, inserted in the commit that claims the payment. A payment that
-- comes to nothing deletes that of its checkout session.
CREATE TABLE single_use (
  account_id uuid NOT NULL,
  -- The checkout session's or the one-time token's.
  object_id uuid NOT NULL,
  payment_id uuid NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account_id, object_id)
);

-- One-time tokens: good for one payment, and until expires_at, when they are swept.
CREATE TABLE one_time_token (
  account_id uuid NOT NULL,
  id uuid NOT NULL,
  -- The checkout session whose payment it is for; null for any payment of the account.
  session_id uuid,
  -- An encoded payments.v1.CardData: what may be told of the card.
  card bytea NOT NULL,
  -- Number and security code as a JWE; null once a payment has used them. Nothing else in the database holds them.
  sealed text,
  expires_at timestamptz NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account_id, id)
);
CREATE INDEX one_time_token_age ON one_time_token (expires_at);

-- Origins (RFC 6454) whose pages may call with the public key alone.
ALTER TABLE account ADD COLUMN allowed_origins text[] NOT NULL DEFAULT '{}';

-- Whose stored method it is; null for one that was stored for no customer.
ALTER TABLE vaulted_token ADD COLUMN customer_id uuid;
