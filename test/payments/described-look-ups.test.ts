import { create } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { PaymentMethodTypeSchema } from '#gen/payments/v1/catalogue_pb.js';
import { Payment_Workflow, Transaction_Category } from '#gen/payments/v1/payment_pb.js';
import {
  CapturePaymentRequestSchema,
  CreatePaymentRequestSchema,
} from '#gen/payments/v1/payment_service_pb.js';
import type { LookUp, ProviderConnection } from '#src/connectors/port/connector.ts';
import { checkDue } from '#src/payments/check/checker.ts';
import { createPayment } from '#src/payments/create/create-payment.ts';
import { capturePayment } from '#src/payments/operate/payment-operations.ts';
import { parseJson } from '#src/wire/parse-json.ts';
import { jsonDecoder } from '#src/wire/wire-json-decode.ts';
import { notified } from '../support/news.ts';
import { cardPayment, withField } from '../support/payment-requests.ts';
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

it("the look-up of a payment with a wallet's token describes its capture and its soft descriptor", async () => {
  const queries: LookUp[] = [];
  const unknown = { kind: 'unknown', detail: 'silence', providerData: undefined } as const;
  const { capabilities, ...provider } = payments.provider.connection;
  const connection: ProviderConnection = {
    ...provider,
    capabilities: { ...capabilities, walletTokens: ['GOOGLE_PAY'] },
    pay: async () => unknown,
    lookUp: async (query) => {
      queries.push(query);
      return unknown;
    },
  };
  const googlePay = create(PaymentMethodTypeSchema, {
    ...{ type: 'GOOGLE_PAY', category: Transaction_Category.WALLET, workflows: [Payment_Workflow.DIRECT] },
  });
  const connections = new Map([['ledger', connection]]);
  const catalogue = {
    ...payments.deps.catalogue(),
    connections,
    types: new Map([['GOOGLE_PAY', googlePay]]),
  };
  const deps = { ...payments.deps, catalogue: () => catalogue, connections: () => connections };
  const wallet = { payment_token: '{"token":"x"}', capture: false, soft_descriptor: 'SHOP' };
  const method = { type: 'GOOGLE_PAY', detail: { wallet } };
  const json = withField(cardPayment(), 'payment_method', method);
  const request = jsonDecoder(CreatePaymentRequestSchema)(parseJson(Buffer.from(JSON.stringify(json))));
  await createPayment(deps, request, payments.caller());
  await payments.makeDue();
  await checkDue(deps);
  expect(queries[0]?.of).toMatchObject({ kind: 'CARD', capture: false, softDescriptor: 'SHOP' });
});
