import { create, type DescMessage, isFieldSet, type JsonValue, type Message } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import {
  AccountTargetsSchema,
  CatalogueSchema,
  Choice,
  CircuitBreakerSchema,
  ConnectionConfigSchema,
  FailoverSchema,
  PaymentMethodTypeSchema,
  RouteSchema,
  TargetSchema,
} from '#gen/payments/v1/catalogue_pb.js';
import type { ConnectorField } from '#gen/payments/v1/configuration_service_pb.js';
import { Payment_Workflow, Transaction_Category } from '#gen/payments/v1/payment_pb.js';
import { connectorForm } from '#src/catalogue/connector-form.ts';
import { CONNECTORS } from '#src/connectors/registry.ts';
import { connectionEditor } from '#src/dashboard/connection-editor.ts';
import type { Editor } from '#src/dashboard/editor.ts';
import { ROUTE_EDITOR } from '#src/dashboard/route-editor.ts';
import { TYPE_EDITOR } from '#src/dashboard/type-editor.ts';

const forms = CONNECTORS.map(connectorForm);

/** A setting of each kind. */
const EXAMPLES: Readonly<Record<string, JsonValue>> = {
  ...{ TEXT: 'one', NUMBER: 7, FLAG: false, LIST: ['a', 'b'], MAP: { ONE: 'http://a:1', TWO: 'b' } },
};

/** Expects that a message has every field, so that a field which a form does not know fails here. */
function expectWhole(schema: DescMessage, message: Message | undefined): void {
  if (!message) throw new Error(`no ${schema.name}`);
  const missing = schema.fields.filter((field) => !isFieldSet(message, field)).map(({ name }) => name);
  expect([schema.name, missing]).toEqual([schema.name, []]);
}

/** Returns the change that a form asks for when nothing in it was changed. */
function unchanged(
  editor: Editor,
  catalogue: ReturnType<typeof create<typeof CatalogueSchema>>,
  name: string,
) {
  const filled = editor.stored(catalogue, name);
  return editor.change((field) => (field === 'editing' ? name : filled(field)), catalogue);
}

const settingsOf = (fields: readonly ConnectorField[]) =>
  Object.fromEntries(
    fields.flatMap(({ name, kind }) => (kind === 'SECRET' ? [] : [[name, EXAMPLES[kind] as JsonValue]])),
  );

it.each(forms)('a connection of $name stays the same in a form that is not changed', ({ name, fields }) => {
  const connection = create(ConnectionConfigSchema, {
    ...{ id: 'one', name: 'One', providerId: 'ONE', connector: name, retired: true, maxInFlight: 3 },
    settings: { ...settingsOf(fields), of_a_later_release: { a: 1 } },
    secretsFromEnvironment: { api_key: 'KEY' },
    circuitBreaker: { off: true, failurePercent: 2, minCalls: 3, windowS: 4, openS: 8 },
    authorizationValidDays: 5,
    redirectValidMinutes: 6,
    accountIds: ['a', 'b'],
    agreedFees: [
      { currency: 'USD', percent: '2.90', fixed: '0.30' },
      { currency: 'BRL', paymentMethodType: 'PIX', percent: '0.99', tolerance: '0.02' },
      { currency: 'JPY', fixed: '30', tolerance: '2' },
    ],
  });
  expectWhole(ConnectionConfigSchema, connection);
  expectWhole(CircuitBreakerSchema, connection.circuitBreaker);
  const catalogue = create(CatalogueSchema, { connections: [connection] });
  const editor = connectionEditor({ forms, connector: '', listed: [] });
  expect(unchanged(editor, catalogue, 'one')).toEqual({ case: 'putConnection', value: connection });
});

it('a route stays the same in a form that is not changed', () => {
  const plan = {
    targets: [
      { connection: 'two', weight: 0 },
      { connection: 'one', weight: 70 },
    ],
    choice: Choice.SPLIT,
    failover: { maxAttempts: 2, softDeclines: true },
  };
  const route = create(RouteSchema, {
    ...{ id: 7, name: 'Seven', description: 'For tests', condition: "type == 'A' &&\n  amount > 1.0" },
    ...plan,
    accounts: [
      { accountIds: ['a', 'b'], ...plan },
      { accountIds: ['c'], targets: [{ connection: 'one' }], choice: Choice.PRIORITY, failover: {} },
    ],
  });
  expectWhole(RouteSchema, route);
  expectWhole(TargetSchema, route.targets[0]);
  expectWhole(FailoverSchema, route.failover);
  expectWhole(AccountTargetsSchema, route.accounts[0]);
  const catalogue = create(CatalogueSchema, { routes: [route] });
  expect(unchanged(ROUTE_EDITOR, catalogue, '7')).toEqual({ case: 'putRoute', value: { route } });
});

it('a payment method type stays the same in a form that is not changed', () => {
  const type = create(PaymentMethodTypeSchema, {
    ...{ type: 'PAY', category: Transaction_Category.WALLET, countries: ['BR', 'MX'], currencies: ['USD'] },
    workflows: [Payment_Workflow.REDIRECT, Payment_Workflow.DIRECT],
  });
  expectWhole(PaymentMethodTypeSchema, type);
  const catalogue = create(CatalogueSchema, { paymentMethodTypes: [type] });
  expect(unchanged(TYPE_EDITOR, catalogue, 'PAY')).toEqual({ case: 'putPaymentMethodType', value: type });
});
