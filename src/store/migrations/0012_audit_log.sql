-- Who did what, and when: operators' commands and their actions in the dashboard. Rows are only ever added, in the commit of
-- what they tell of. No secret is in them.
CREATE TABLE audit_log (
  -- The nil UUID for what was done to the whole installation.
  account_id uuid NOT NULL,
  -- UUIDv7, so that an account's newest are found by id.
  id uuid NOT NULL,
  -- Who: a user and host, or an operator of the dashboard.
  actor text NOT NULL CHECK (length(actor) BETWEEN 1 AND 600),
  -- What: a word such as add-secret or refund.
  action text NOT NULL CHECK (length(action) BETWEEN 1 AND 100),
  -- What it was done to: the id of a key, a payment, a webhook; empty when that is the account.
  subject text NOT NULL CHECK (length(subject) <= 300),
  -- How: the setting, the amount.
  detail text NOT NULL CHECK (length(detail) <= 1000),
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (account_id, id)
);
