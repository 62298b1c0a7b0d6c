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
