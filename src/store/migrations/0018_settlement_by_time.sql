-- migrate: concurrently

-- Lines by time, for exports: the matched ones of an account, and those of no account.
CREATE INDEX CONCURRENTLY IF NOT EXISTS settlement_match_by_time
  ON settlement_match (account_id, coalesce(occurred_at, added_at), transaction_id, line_key);
CREATE INDEX CONCURRENTLY IF NOT EXISTS settlement_line_by_time
  ON settlement_line (account_id, coalesce(occurred_at, added_at), connection_identity, line_key)
  WHERE result IN ('unmatched', 'ambiguous', 'none_expected');

-- Payouts themselves: one line among the many of a payout.
CREATE INDEX CONCURRENTLY IF NOT EXISTS settlement_line_payout ON settlement_line (account_id, connection_identity, payout_reference)
  WHERE kind IN ('payout', 'payout_reversal');

-- Differences by time, for exports, and the unresolved ones by kind, for the overview.
CREATE INDEX CONCURRENTLY IF NOT EXISTS settlement_difference_by_time
  ON settlement_difference (account_id, opened_at, connection_identity, kind, subject);
CREATE INDEX CONCURRENTLY IF NOT EXISTS settlement_difference_unresolved ON settlement_difference (kind, opened_at)
  WHERE ended_at IS NULL AND resolved_at IS NULL;
