-- Merchant accounts and the keys that speak for them.
CREATE TABLE account (
  id uuid PRIMARY KEY,
  name text NOT NULL,
  -- Demands the secret key of every call, also of those that the public key alone may make.
  secret_always boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE public_key (
  public_key text COLLATE "C" PRIMARY KEY,
  account_id uuid NOT NULL REFERENCES account,
  created_at timestamptz NOT NULL DEFAULT now(),
  revoked_at timestamptz
);

CREATE TABLE secret_key (
  id uuid PRIMARY KEY,
  account_id uuid NOT NULL REFERENCES account,
  -- SHA-256 of the secret: it has 128 random bits or more, so a slow hash would protect nothing more.
  secret_hash bytea NOT NULL CHECK (length(secret_hash) = 32),
  created_at timestamptz NOT NULL DEFAULT now(),
  revoked_at timestamptz
);
CREATE INDEX secret_key_account ON secret_key (account_id) WHERE revoked_at IS NULL;

-- What a request may refer to. Every look-up names the account too: another account's objects do not exist for it.
CREATE TABLE customer (
  id uuid PRIMARY KEY,
  account_id uuid NOT NULL REFERENCES account,
  -- An encoded payments.v1.CustomerPayer.
  payer bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE checkout_session (
  id uuid PRIMARY KEY,
  account_id uuid NOT NULL REFERENCES account,
  customer_id uuid REFERENCES customer,
  created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE vaulted_token (
  id uuid PRIMARY KEY,
  account_id uuid NOT NULL REFERENCES account,
  -- payment_method.type.
  type text NOT NULL,
  -- An encoded payments.v1.CardData, for cards: what may be told of the card.
  card bytea,
  -- The card number as a JWE, for cards. Nothing else in the database holds it.
  card_number text,
  -- The provider's own token, for wallets.
  provider_token text,
  -- false while the payment that asked for the vaulting has no outcome yet.
  active boolean NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  CHECK ((card IS NULL) = (card_number IS NULL))
);

-- One row a payment. Its idempotency key is claimed by inserting it, in one commit with its transaction, before any
-- provider is called. The records are messages; only what queries need has a column.
CREATE TABLE payment (
  id uuid PRIMARY KEY,
  -- No foreign key: accounts are never deleted, and its check would lock the account's row once a payment.
  account_id uuid NOT NULL,
  idempotency_key text COLLATE "C" NOT NULL,
  -- Keyed hash of the canonical request: tells a retry from another request under the same key.
  request_hash bytea NOT NULL,
  status text NOT NULL,
  -- An encoded payments.v1.Payment: the record as it stands.
  record bytea NOT NULL,
  -- The body that REST answered, byte for byte; null until there is an answer. Once given it never changes.
  answer bytea,
  -- The record as it was answered, once the record has moved on from it.
  answered_record bytea,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (account_id, idempotency_key)
) WITH (fillfactor = 60);

-- One row an attempt at a provider; its id is the provider's idempotency key.
CREATE TABLE transaction (
  id uuid PRIMARY KEY,
  payment_id uuid NOT NULL,
  -- The catalogue's connection that was asked.
  connection_id text NOT NULL,
  status text NOT NULL,
  amount_minor_units bigint NOT NULL CHECK (amount_minor_units > 0),
  currency text NOT NULL,
  -- The flag that was asked for; the record shows another (see the interface), and a later capture goes by this one.
  capture boolean NOT NULL,
  -- The card that waits for the outcome, if the payment asked to keep one.
  vaulted_token uuid,
  -- When what became of it is looked up next; null once that is known. Until the claim's own deadline this is the lease
  -- of who claimed it, after that of the recovery that took it.
  look_up_at timestamptz,
  look_ups integer NOT NULL DEFAULT 0,
  -- Counts the takers: who took it writes its outcome only while nobody took it since.
  fence integer NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 80);
CREATE INDEX transaction_look_up ON transaction (look_up_at) WHERE look_up_at IS NOT NULL;
