-- A write that sets the next check of another transaction than the reported one keeps an earlier check that news has asked
-- for: news that nobody has settled would otherwise wait for days, or for ever. Signature and settings of the function stay
-- as they are, whatever engine runs it.
DO $replace$
DECLARE
  defined text := pg_get_functiondef('write_change_1'::regproc);
  changed text := replace(replace(defined, $before$
  IF the_other IS NOT NULL THEN
$before$, $after$
  IF the_other IS NOT NULL THEN
    -- Locked first, so that the statement below sees news whose commit this write has waited for.
    PERFORM 1 FROM transaction t WHERE t.account_id = the_account AND t.id = the_other FOR NO KEY UPDATE;
$after$), $before$
    SET check_at = written_at + make_interval(secs => other_check_in_s), fence = t.fence + 1,
$before$, $after$
    SET fence = t.fence + 1,
      -- least ignores nulls.
      check_at = least(written_at + make_interval(secs => other_check_in_s), CASE WHEN EXISTS (
        SELECT 1 FROM notification n
        WHERE n.account_id = the_account AND n.transaction_id = the_other AND n.settled_at IS NULL
      ) THEN t.check_at END),
$after$);
BEGIN
  IF length(changed) - length(defined) < 400 THEN
    RAISE EXCEPTION 'write_change_1 is not the function that this migration changes';
  END IF;
  EXECUTE changed;
END $replace$;
