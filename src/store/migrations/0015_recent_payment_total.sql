-- Totals of the payments created in an hour by country, and of those declined by code, for the dashboard's figures of the last
-- day and the day before. They are written together with payment_total. Nothing in them identifies a payer.
CREATE TABLE recent_payment_total (
  account_id uuid NOT NULL,
  -- The hour (UTC) in which the payments were created.
  hour timestamptz NOT NULL,
  -- COUNTRY, or CODE: the response code of the last declined attempt.
  kind text NOT NULL,
  name text NOT NULL,
  -- As in payment_total.
  outcome text NOT NULL,
  payments integer NOT NULL,
  PRIMARY KEY (account_id, hour, kind, name, outcome)
);
CREATE INDEX recent_payment_total_by_hour ON recent_payment_total (hour);
