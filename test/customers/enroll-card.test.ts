import { randomBytes, randomUUID } from 'node:crypto';
import { create } from '@bufbuild/protobuf';
import { timestampNow } from '@bufbuild/protobuf/wkt';
import { expect, it } from 'vitest';
import {
  EnrollPaymentMethodRequestSchema,
  StoredPaymentMethod_Status as Status,
} from '#gen/payments/v1/payment_method_service_pb.js';
import { enrollMethod, type MethodDeps, unenrollMethod } from '#src/customers/stored-methods.ts';
import { createBinTable } from '#src/payments/method/bin-table.ts';
import type { LiveCatalogue } from '#src/payments/route/live-catalogue.ts';
import type { Database } from '#src/store/engine/database.ts';
import { insertNewCustomer } from '#src/store/tables/customers.ts';
import { cardVault } from '#src/vault/card-vault.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';

onOwnDatabase({ empties: 'vaulted_token' });

const KEY = randomBytes(32);
const deps = (): MethodDeps => ({
  database,
  vault: cardVault(new Map([['test-1', KEY]])),
  ...{ requestHashKey: KEY, fingerprintKey: KEY },
  newId: () => randomUUID(),
  catalogue: () => ({ bins: createBinTable([]) }) as unknown as LiveCatalogue,
  now: timestampNow,
  publicUrl: () => 'https://payments.example',
  observer: {} as MethodDeps['observer'],
});

it('a card that is enrolled again during its unenrollment is stored under a new ID', async () => {
  const customerId = randomUUID();
  const accountId = ACCOUNT_ONE;
  await database.transaction((run) =>
    insertNewCustomer(run, {
      ...{ accountId, id: customerId, merchantCustomerId: undefined },
      ...{ payer: Buffer.alloc(0), metadata: '[]' },
    }),
  );
  const card = { number: '4111111111111111', expirationMonth: 12, expirationYear: 2030, holderName: 'A' };
  const enroll = async (on: Database) => {
    const request = create(EnrollPaymentMethodRequestSchema, { customerId, country: 'CO', cardData: card });
    const caller = { accountId, idempotencyKey: undefined, secretPresented: true };
    return (await enrollMethod({ ...deps(), database: on }, request, caller)).message;
  };
  const { id } = await enroll(database);
  const ending: Database['transaction'] = (work) =>
    database.transaction((run) =>
      work(async (text, values) => {
        const result = await run(text, values);
        if (/fingerprint = \$3/.test(text)) {
          const ended = await unenrollMethod(deps(), { accountId, customerId, id });
          expect(ended.status).toBe(Status.UNENROLLED);
        }
        return result as never;
      }),
    );
  const again = await enroll({ ...database, transaction: ending });
  expect([again.status, again.id === id]).toEqual([Status.ENROLLED, false]);
  const rows = await tables.query('SELECT id, status, card_number IS NULL AS gone FROM vaulted_token');
  expect(rows).toEqual(
    expect.arrayContaining([
      { id, status: 'UNENROLLED', gone: true },
      { id: again.id, status: 'ENROLLED', gone: false },
    ]),
  );
});
