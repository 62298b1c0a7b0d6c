import { create } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import type { Outcome } from '#src/connectors/outcome.ts';
import { applySigned } from '#src/payments/check/apply-signed.ts';
import type { Database } from '#src/store/engine/database.ts';
import { DatabaseUnavailableError } from '#src/store/engine/database-error.ts';
import type { Behaviour } from './ledger-provider.ts';
import { onOperatedPayments, payments } from './operated-payments.ts';

onOperatedPayments();

const providerData = create(ProviderDataSchema);
const DECLINED: Outcome = { kind: 'declined', iso8583Code: '05', providerData };

it.each<[string, Behaviour, { capture: boolean }, Outcome]>([
  ['end of an authorization', 'does it', { capture: false }, { kind: 'expired', providerData }],
  ['outcome after a payer was sent away', 'sends the payer away', { capture: true }, DECLINED],
  ['outcome after a lost answer', 'never hears of it', { capture: true }, DECLINED],
])(
  'the signed %s does not hold up a stop while the database is down',
  async (_what, behaviour, options, outcome) => {
    payments.provider.next.push(behaviour);
    const { transactions } = await payments.pay(options);
    let writes = 0;
    const query: Database['query'] = async (statement, values) => {
      if (!/^finish/.test(statement.name ?? '')) return payments.database.query(statement, values);
      writes += 1;
      throw writes === 1
        ? new DatabaseUnavailableError(new Error('refused'))
        : new Error('it was tried again');
    };
    const deps = { ...payments.deps, database: { ...payments.database, query } };
    const signed = { outcome, minorUnits: 10_000n, currency: 'USD' };
    const connection = { ...payments.provider.connection, lookUp: undefined };
    const applied = applySigned(deps, connection, transactions?.id ?? '', signed, AbortSignal.abort());
    await expect(applied).rejects.toBeInstanceOf(DatabaseUnavailableError);
    expect(writes).toBe(1);
  },
);
