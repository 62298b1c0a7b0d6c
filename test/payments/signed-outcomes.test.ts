import { randomUUID } from 'node:crypto';
import { create } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import type { ProviderConnection } from '#src/connectors/connector.ts';
import type { Outcome } from '#src/connectors/outcome.ts';
import { checkTransaction } from '#src/payments/check/check-transaction.ts';
import { type LeasedCheck, takeDue } from '#src/store/engine/checks.ts';
import type { Database } from '#src/store/engine/database.ts';
import { DatabaseUnavailableError } from '#src/store/engine/database-error.ts';
import { insertNotification } from '#src/store/tables/notifications.ts';
import type { Behaviour } from './ledger-provider.ts';
import { onOperatedPayments, payments } from './operated-payments.ts';
import { idOf } from './requested-operations.ts';

onOperatedPayments({ empties: 'payment, transaction, notification' });

const providerData = create(ProviderDataSchema);
const DECLINED: Outcome = { kind: 'declined', iso8583Code: '05', providerData };

it.each<[string, Behaviour, { capture: boolean }, Outcome]>([
  ['end of an authorization', 'does it', { capture: false }, { kind: 'expired', providerData }],
  ['outcome after a payer was sent away', 'sends the payer away', { capture: true }, DECLINED],
  ['outcome after a lost answer', 'never hears of it', { capture: true }, DECLINED],
])(
  'writing the signed %s does not delay a shutdown while the database is down',
  async (_what, behaviour, options, outcome) => {
    payments.provider.next.push(behaviour);
    const payment = await payments.pay(options);
    const transactionId = idOf(payment);
    const signed = { outcome, minorUnits: 10_000n, currency: 'USD' };
    const connection: ProviderConnection = {
      ...payments.provider.connection,
      lookUp: undefined,
      readNotification: async () => ({
        ...{ kind: 'about', deduplicationKey: '', subjects: [{ transactionId, signed }] },
      }),
    };
    await insertNotification(payments.database, {
      ...{ connectionId: 'ledger', deduplicationKey: randomUUID(), subjects: [{ transactionId }] },
      ...{ body: Buffer.alloc(0), query: '', headers: '{}' },
    });
    await payments.makeDue();
    const take = { limit: 1, leaseS: 60 };
    const [leased] = await takeDue(payments.database, { connectionId: 'ledger', identity: 'ledger' }, take);
    let writes = 0;
    const query: Database['query'] = async (statement, values) => {
      if (!/^write_change/.test(statement.name)) return payments.database.query(statement, values);
      writes += 1;
      throw writes === 1
        ? new DatabaseUnavailableError(new Error('refused'))
        : new Error('it was tried again');
    };
    const deps = { ...payments.deps, database: { ...payments.database, query } };
    const applied = checkTransaction(deps, connection, leased as LeasedCheck, AbortSignal.abort());
    await expect(applied).rejects.toBeInstanceOf(DatabaseUnavailableError);
    expect(writes).toBe(1);
  },
);
