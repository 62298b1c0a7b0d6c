/** Id that no object has. It stands for an account that is not known yet, and for a text that is not a UUID. */
export const NIL_UUID = '00000000-0000-0000-0000-000000000000';

/**
 * Returns a condition that rows of `transaction` belong to an account. It also accepts rows without an account, which
 * an earlier release inserted (`adoptTransactions` gives them one), so each statement names the transaction or the
 * payment as well. Once no release before 0017 is in use and all rows are adopted, it can become plain equality.
 *
 * @param column such as `t.account_id`.
 * @param account a parameter, such as `$1`.
 */
export function isOfAccount(column: string, account: string): string {
  return `${column} IN (${account}, '${NIL_UUID}')`;
}
