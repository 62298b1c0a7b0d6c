-- Totals of the payments created in an hour, for the dashboard's figures over time. They are written again from the payments,
-- so they need no backup. Nothing in them identifies a payer.
CREATE TABLE payment_total (
  account_id uuid NOT NULL,
  -- The hour (UTC) in which the payments were created.
  hour timestamptz NOT NULL,
  -- Of the last attempt.
  connection_id text NOT NULL,
  method_type text NOT NULL,
  currency text NOT NULL,
  -- APPROVED, DECLINED, FAILED (not sent, expired or canceled before an approval) or OPEN. Under the nil account, NIGHT says that
  -- the last 35 days were written on this day.
  outcome text NOT NULL,
  payments integer NOT NULL,
  -- Money that their purchases and captures moved to the merchant, in minor units of the currency.
  approved_minor_units bigint NOT NULL,
  refunds integer NOT NULL,
  refunded_minor_units bigint NOT NULL,
  disputes integer NOT NULL,
  PRIMARY KEY (account_id, hour, connection_id, method_type, currency, outcome)
);
CREATE INDEX payment_total_by_hour ON payment_total (hour);
