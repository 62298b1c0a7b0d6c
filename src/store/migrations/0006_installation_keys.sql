-- What tells the keys of an installation from others: each replica compares its own at its start. No key can be computed
-- from its check value.
CREATE TABLE installation_key (
  -- `hash key`, or `vault key` and its id.
  name text PRIMARY KEY,
  check_value bytea NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
