-- The time that the lines of each kind of report of an account at a provider cover, in place of the columns of
-- settlement_progress, which the previous release writes.
CREATE TABLE settlement_coverage (
  -- The nil UUID, as of the reports.
  account_id uuid NOT NULL,
  connection_identity text NOT NULL,
  -- As of the lines.
  report text NOT NULL,
  -- The earliest and the latest payment in the reports, by the provider's clock.
  covered_from timestamptz NOT NULL,
  covered_until timestamptz NOT NULL,
  -- Successes until then were compared with the reports; null if none was.
  compared_until timestamptz,
  PRIMARY KEY (account_id, connection_identity, report)
);
INSERT INTO settlement_coverage (account_id, connection_identity, report, covered_from, covered_until)
SELECT account_id, connection_identity, report, min(occurred_at), max(occurred_at) FROM settlement_line
WHERE kind = 'payment' AND result IS NOT NULL AND occurred_at IS NOT NULL
GROUP BY account_id, connection_identity, report;
UPDATE settlement_coverage c SET compared_until = p.compared_until FROM settlement_progress p
WHERE p.account_id = c.account_id AND p.connection_identity = c.connection_identity AND c.report = '';
