-- The operators' configuration: published catalogues, and which processes run them. Unused if a file has the catalogue.

-- Published catalogues. A row never changes, and none is deleted, because payments name the version that routed them.
CREATE TABLE catalogue_version (
  version integer PRIMARY KEY CHECK (version > 0),
  -- Raised with each field that restricts payments: a release that does not know the format does not run the catalogue.
  format integer NOT NULL CHECK (format > 0),
  -- An encoded payments.v1.Catalogue, and the schema that it was written with (response_schema).
  catalogue bytea NOT NULL,
  schema bytea NOT NULL,
  -- SHA-256 of the catalogue in its canonical form.
  hash bytea NOT NULL CHECK (length(hash) = 32),
  source text NOT NULL CHECK (source IN ('seed', 'api', 'dashboard', 'command', 'undo')),
  -- The version that it replaced; 0 for the first.
  replaced integer NOT NULL CHECK (replaced >= 0),
  actor text NOT NULL CHECK (length(actor) BETWEEN 1 AND 600),
  comment text NOT NULL CHECK (length(comment) <= 1000),
  published_at timestamptz NOT NULL DEFAULT now()
);

-- The version in force. It has one row, which every process reads once a second.
CREATE TABLE catalogue_head (
  id boolean PRIMARY KEY DEFAULT true CHECK (id),
  version integer NOT NULL,
  -- Raised with every version, and with every change of a stored secret.
  revision bigint NOT NULL DEFAULT 1
);

-- The processes that run the service with these catalogues, so that operators see which version runs where.
CREATE TABLE catalogue_replica (
  -- Host, process and start.
  name text PRIMARY KEY CHECK (length(name) BETWEEN 1 AND 300),
  version integer NOT NULL,
  -- Why it cannot run the newest version; '' if it does.
  fault text NOT NULL CHECK (length(fault) <= 1000),
  seen_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX catalogue_replica_by_age ON catalogue_replica (seen_at);

-- The connections that are retired in the version in force, and since when: their payments can be refunded for a while.
CREATE TABLE retired_connection (
  connection_id text PRIMARY KEY,
  retired_at timestamptz NOT NULL DEFAULT now()
);

-- Secrets of connections, sealed by the vault. Every change raises the head's revision.
CREATE TABLE connection_secret (
  id uuid PRIMARY KEY,
  connection_id text NOT NULL CHECK (length(connection_id) BETWEEN 1 AND 255),
  -- As in the connector's message, such as api_key.
  name text NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
  -- The value that the present one replaced: it still verifies notifications until `ends_at`.
  is_previous boolean NOT NULL DEFAULT false,
  -- A compact JWE, bound to the connection and the name.
  sealed text NOT NULL,
  actor text NOT NULL CHECK (length(actor) BETWEEN 1 AND 600),
  set_at timestamptz NOT NULL DEFAULT now(),
  -- NULL: the connection is in a published catalogue. Otherwise the value is deleted a day later: the end of a previous
  -- value, or when a value was set for a connection that is yet to be published.
  ends_at timestamptz,
  UNIQUE (connection_id, name, is_previous)
);
CREATE INDEX connection_secret_end ON connection_secret (ends_at) WHERE ends_at IS NOT NULL;

-- The account at the provider for which a connection's id stands. A row is never deleted.
CREATE TABLE connection_account (
  connection_id text PRIMARY KEY CHECK (length(connection_id) BETWEEN 1 AND 255),
  -- The first identity, which transactions keep in connection_identity.
  identity text NOT NULL,
  -- The identities of later credentials for the same account, where a credential identifies the account.
  later_identities text[] NOT NULL DEFAULT '{}',
  -- As the provider names the account; NULL if it was never asked.
  provider_account text CHECK (length(provider_account) BETWEEN 1 AND 300)
);
