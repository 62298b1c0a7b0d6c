-- A transaction without an account would be found by nothing: what inserts one is to fail. look_ups is unused since 0002.
ALTER TABLE transaction ALTER COLUMN account_id DROP DEFAULT, DROP COLUMN look_ups;
