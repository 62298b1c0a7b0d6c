import { expect, it } from 'vitest';
import { scopeOf } from '#src/store/engine/statement-scope.ts';

it.each([
  ['SELECT record FROM payment WHERE account_id = $1 AND id = $2', 0],
  ['UPDATE transaction t SET fence = 1 WHERE t.id = $1 AND t.account_id = $2', 1],
  ['SELECT * FROM claim_payment_1(the_account => $3::uuid, the_id => $1::uuid) AS result', 2],
  ['SELECT * FROM relay_events_1($1::uuid, $2::uuid[])', 0],
  ['\n INSERT INTO customer (id, account_id, payer) VALUES ($1, $2, $3)\n ON CONFLICT DO NOTHING', 1],
  ["INSERT INTO vaulted_token AS v (account_id, id, status) VALUES ($1, $2, 'ENROLLED') RETURNING id", 0],
  ['SELECT id FROM transaction WHERE account_id = ANY ($4::uuid[]) AND connection_id = $1', 3],
  ['WITH gone AS (DELETE FROM delivery WHERE account_id = $2 RETURNING id) SELECT count(*) FROM gone', 1],
])('a statement that names one account runs on its node: %s', (text, accountAt) => {
  expect(scopeOf(text)).toEqual({ accountAt });
});

it.each([
  'SELECT account_id, id FROM transaction WHERE check_at <= now()',
  'SELECT count(*) FROM (SELECT 1 FROM delivery LIMIT $1) open',
  'UPDATE account SET name = $2 WHERE id = $1',
  'INSERT INTO account (id, name) VALUES ($1, $2)',
])('a statement that names no account, or writes a copied table, runs on several nodes: %s', (text) => {
  expect(scopeOf(text)).toBe('nodes');
});

it.each([
  'SELECT a.id FROM public_key p JOIN account a ON a.id = p.account_id WHERE p.public_key = $1',
  'SELECT id FROM account WHERE id = $1',
  "SELECT nodename FROM pg_dist_placement WHERE shardid = get_shard_id_for_distribution_column('payment', $1)",
  'INSERT INTO audit_log (account_id, id) VALUES ($1, $2)',
  'SELECT 1',
])('a statement without an account’s table runs on the coordinator: %s', (text) => {
  expect(scopeOf(text)).toBe('coordinator');
});
