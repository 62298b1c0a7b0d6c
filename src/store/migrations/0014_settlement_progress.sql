-- The work on settlement reports that is still to be done, a row for each account at a provider.
CREATE TABLE settlement_progress (
  -- The nil UUID, as of the reports.
  account_id uuid NOT NULL,
  connection_identity text NOT NULL,
  -- Number of complete imports, and of those whose lines were all searched.
  imports integer NOT NULL DEFAULT 0,
  matched_imports integer NOT NULL DEFAULT 0,
  -- Until then, a process matches the lines; afterwards, another one may continue.
  leased_until timestamptz NOT NULL DEFAULT now(),
  -- Number of times that a payment was found to be settled against the record, and of those that raised their alarms.
  alarms integer NOT NULL DEFAULT 0,
  raised_alarms integer NOT NULL DEFAULT 0,
  -- The earliest and the latest moved money in the reports, by the provider's clock.
  covered_from timestamptz,
  covered_until timestamptz,
  -- Successes until then were compared with the reports; null if none was.
  compared_until timestamptz,
  PRIMARY KEY (account_id, connection_identity)
);

-- When a running service raised the alarm of a difference; null for a difference that has none, or whose alarm is due.
ALTER TABLE settlement_difference ADD COLUMN alarmed_at timestamptz;
