import { create } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { CapturePaymentRequestSchema } from '#gen/payments/v1/payment_service_pb.js';
import type { LookUp, ProviderConnection } from '#src/connectors/port/connector.ts';
import { checkDue } from '#src/payments/check/checker.ts';
import { capturePayment } from '#src/payments/operate/payment-operations.ts';
import { notified } from '../support/news.ts';
import { onOperatedPayments, payments } from './operated-payments.ts';

onOperatedPayments({ empties: 'payment, transaction, notification' });

it('the look-up of an operation describes that operation, and the look-up of an authorization the authorization', async () => {
  const payment = await payments.pay({ capture: false });
  payments.provider.next.push('delays it');
  const request = { paymentId: payment.id, merchantReference: 'capture-1', description: 'two books' };
  const asked = create(CapturePaymentRequestSchema, request);
  await capturePayment(payments.deps, asked, payments.caller());
  const queries: LookUp[] = [];
  const connection: ProviderConnection = {
    ...payments.provider.connection,
    lookUp: async (query) => {
      queries.push(query);
      return { kind: 'unknown', detail: 'silence', providerData: undefined };
    },
  };
  const deps = { ...payments.deps, connections: () => new Map([['ledger', connection]]) };
  await payments.makeDue();
  await checkDue(deps);
  payments.provider.settleDelayed();
  await payments.makeDue();
  await checkDue(payments.deps);
  await notified(deps, 'ledger', { transactionId: payment.transactions?.id });
  const { transactions: own } = payment;
  expect(queries.map(({ of }) => of)).toMatchObject([
    { kind: 'capture', merchantReference: 'capture-1', description: 'two books' },
    {
      ...{ kind: 'CARD', capture: false, verify: false },
      attempt: { transactionId: own?.id, merchantReference: own?.merchantReference },
    },
  ]);
});
