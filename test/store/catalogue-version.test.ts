import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { claimOperation } from '#src/store/engine/claim-operation.ts';
import { claimPayment } from '#src/store/engine/claim-payment.ts';
import { claimGrouped, writeChange } from '#src/store/engine/grouped-writes.ts';
import { approvedPayment, attemptToClaim, changeOf, operationClaimOf } from '../support/claimed-rows.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';

onOwnDatabase({ empties: 'payment, transaction' });

const versioned = () => ({ ...attemptToClaim().claim, catalogueVersion: 7 });
const versions = async () =>
  (await tables.query('SELECT catalogue_version FROM transaction ORDER BY catalogue_version')).map(
    ({ catalogue_version }) => catalogue_version,
  );

it('a claim stores the version of the catalogue', async () => {
  await claimPayment(database, versioned());
  expect(await versions()).toEqual([7]);
});

// A distributed database groups the claims of each account.
it.each([false, true].filter((isDistributed) => isDistributed || !process.env.CITUS_URL))(
  'claims in a group store the version of the catalogue (distributed: %s)',
  async (isDistributed) => {
    const claims = [1, 2, 3].map(versioned);
    await Promise.all(claims.map((claim) => claimGrouped({ ...database, isDistributed }, claim)));
    expect(await versions()).toEqual([7, 7, 7]);
  },
);

it('the claim of an operation stores the version of the catalogue', async () => {
  const base = await approvedPayment(database, tables);
  await claimOperation(database, operationClaimOf(base, { catalogueVersion: 7 }));
  expect(await versions()).toEqual([0, 7]);
});

it('an added transaction has the version of the catalogue', async () => {
  const base = await approvedPayment(database, tables);
  const added = {
    ...{ id: randomUUID(), type: 'PURCHASE', parentId: undefined, status: 'PENDING', isFinal: false },
    ...{ connectionId: 'second', connectionIdentity: 'second account', minorUnits: 1n, currency: 'USD' },
    ...{ capture: false, reference: undefined, providerPaymentId: undefined, vaultedToken: undefined },
    ...{ checkInS: undefined, catalogueVersion: 7 },
  };
  await writeChange(database, { ...changeOf(base, 'ADDED', { version: 1 }), transaction: undefined, added });
  expect(await versions()).toEqual([0, 7]);
});
