import { randomUUID } from 'node:crypto';
import { type DescMessage, getOption } from '@bufbuild/protobuf';
import { type ReflectMessage, reflect } from '@bufbuild/protobuf/reflect';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FieldBehavior, field_behavior } from '#gen/google/api/field_behavior_pb.js';
import { not_supported } from '#gen/payments/v1/json_options_pb.js';
import { CreatePaymentRequestSchema } from '#gen/payments/v1/payment_service_pb.js';
import { differences } from './support/match-record.ts';
import { type Clients, createClients, loadScenarios, requestMessage } from './support/scenario.ts';
import { startTestServer } from './support/server.ts';

const scenarios = loadScenarios();
let server: Awaited<ReturnType<typeof startTestServer>>;
let clients: Clients;

beforeAll(async () => {
  server = await startTestServer();
  clients = createClients(server.url);
});

afterAll(async () => {
  clients?.close();
  await server?.close();
});

describe.each(scenarios)('$name', (scenario) => {
  it.each(['rest', 'connect', 'grpc', 'grpcWeb'] as const)(
    'a scenario’s request gets its record over %s, and a repeated request gets the same record',
    async (protocol) => {
      const idempotencyKey = randomUUID();
      const first = await clients[protocol](scenario, idempotencyKey);
      expect(differences(scenario.response, first.record)).toEqual([]);
      expect(first.headers.get('idempotent-replayed')).toBeNull();

      const replay = await clients[protocol](scenario, idempotencyKey);
      expect(replay.record).toBe(first.record);
      expect(replay.headers.get('idempotent-replayed')).toBe('true');
      expect(replay.status).toBe(first.status);
    },
  );

  it('a REST request gets 201, JSON and the location of the payment', async () => {
    const { record, headers, status } = await clients.rest(scenario, randomUUID());
    expect(status).toBe(201);
    expect(headers.get('content-type')).toMatch(/^application\/json\b/);
    expect(headers.get('location')).toBe(`/v1/payments/${JSON.parse(record).id}`);
  });

  it('a record has one transaction, which is the same in transactions and in transactions_history', async () => {
    const payment = JSON.parse((await clients.rest(scenario, randomUUID())).record);
    expect(payment.transactions_history).toEqual([payment.transactions]);
    expect(payment.transactions.id).not.toBe(payment.id);
    // The provider gets our transaction's id as the key, not the merchant's key.
    expect(payment.transactions.provider_data.raw_response.idempotency_key).toBe(payment.transactions.id);
    const { payment_method_detail, ...method } = payment.payment_method;
    expect(payment.transactions.payment_method).toEqual({ ...method, detail: payment_method_detail });
  });
});

describe('all scenarios', () => {
  it('the scenarios are numbered from 00 to 22', () => {
    expect(scenarios.map(({ name }) => name.slice(0, 2))).toEqual(
      Array.from({ length: 23 }, (_, i) => String(i).padStart(2, '0')),
    );
  });

  it('the scenarios send every field of a request', () => {
    const sent = new Set(
      scenarios.flatMap((scenario) =>
        fieldsSet(reflect(CreatePaymentRequestSchema, requestMessage(scenario))),
      ),
    );
    // Requests have a list of tickets; only records have `ticket`.
    sent.add('field payments.v1.Airline.ticket');
    // Binary protocols send decimal quantities in this field; the interface's examples have only integers.
    sent.add('field payments.v1.OrderItem.quantity_decimal');
    // Valid for a single payment, so the tests in test/customers make and use tokens.
    sent.add('field payments.v1.PaymentMethodInput.token');
    // A fixed time would pass: test/local-methods.test.ts sends it.
    for (const group of ['BankTransfer', 'Ticket']) sent.add(`field payments.v1.${group}Input.expires_at`);
    // Without effect for a wallet, or refused: payments/payment-method.test.ts.
    for (const flag of ['verify', 'capture', 'installments'])
      sent.add(`field payments.v1.WalletInput.${flag}`);
    expect([...requestFields(CreatePaymentRequestSchema)].filter((field) => !sent.has(field))).toEqual([]);
  });
});

function requestFields(message: DescMessage): Set<string> {
  const fields = message.fields.filter(
    (field) =>
      !getOption(field, field_behavior).includes(FieldBehavior.OUTPUT_ONLY) &&
      !getOption(field, not_supported),
  );
  return new Set(
    fields.flatMap((field) => [
      String(field),
      ...(isOurs(field.message) ? requestFields(field.message) : []),
    ]),
  );
}

function fieldsSet(message: ReflectMessage): string[] {
  return message.fields
    .filter((field) => message.isSet(field))
    .flatMap((field) => {
      if (!isOurs(field.message)) return [String(field)];
      const messages = field.fieldKind === 'list' ? [...message.get(field)] : [message.get(field)];
      return [String(field), ...messages.flatMap((inner) => fieldsSet(inner as ReflectMessage))];
    });
}

/** Returns false for google.type.Decimal and similar types, which count as values. */
function isOurs(message: DescMessage | undefined): message is DescMessage {
  return message?.file.proto.package === 'payments.v1';
}
