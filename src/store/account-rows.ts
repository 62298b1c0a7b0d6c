/** No row's own id or account: what has no account yet, or is no UUID. */
export const NIL_UUID = '00000000-0000-0000-0000-000000000000';

/**
 * A condition that rows of `transaction` are an account's. It takes those too that a release before inserted, which did not
 * name their account (`adoptTransactions` gives it to them), so each statement names the transaction or the payment as
 * well. Once no release before 0017 is in use and all are adopted, it is plain equality.
 *
 * @param column such as `t.account_id`. @param account a parameter, such as `$1`.
 */
export function isOfAccount(column: string, account: string): string {
  return `${column} IN (${account}, '${NIL_UUID}')`;
}
