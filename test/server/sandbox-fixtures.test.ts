import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { createBinTable } from '#src/payments/method/bin-table.ts';
import { addSandboxFixtures } from '#src/server/sandbox-fixtures.ts';
import { eraseMethods } from '#src/store/tables/stored-methods.ts';
import { cardVault } from '#src/vault/card-vault.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE, CUSTOMER, ENROLLED_WALLET } from '../support/payment-requests.ts';

onOwnDatabase({});

const vault = cardVault(new Map([['one', randomBytes(32)]]));
const start = () =>
  addSandboxFixtures(database, { vault, fingerprintKey: randomBytes(32), bins: createBinTable([]) });
const rows = () => tables.query('SELECT * FROM vaulted_token ORDER BY id');

it('the sandbox’s wallet is enrolled at its connection, and a second start changes no fixture', async () => {
  await start();
  const first = await rows();
  expect(first[0]).toMatchObject({
    ...{ id: ENROLLED_WALLET, customer_id: CUSTOMER, status: 'ENROLLED', active: true },
    ...{ connection_id: 'sandbox-one', provider_token: 'sandbox-enrollment-1', check_at: null },
  });
  await start();
  expect(await rows()).toEqual(first);
});

it('a start does not enroll the wallet of a deleted customer again', async () => {
  await database.transaction((run) => eraseMethods(run, { accountId: ACCOUNT_ONE, customerId: CUSTOMER }));
  await tables.query("UPDATE customer SET deleted_at = now(), payer = '' WHERE id = $1", [CUSTOMER]);
  const erased = await rows();
  await start();
  expect(await rows()).toEqual(erased);
  expect(erased[0]).toMatchObject({ status: 'UNENROLLED', active: false, provider_token: null });
});
