import { createClient } from '@connectrpc/connect';
import { beforeAll, expect, vi } from 'vitest';
import { PaymentSchema } from '#gen/payments/v1/payment_pb.js';
import { PaymentService } from '#gen/payments/v1/payment_service_pb.js';
import { jsonEncoder } from '#src/wire/wire-json-encode.ts';
import type { Protocol } from './api-clients.ts';
import { clients, onService, server, tables } from './on-service.ts';
import { headersOne, type RequestJson, withField } from './payment-requests.ts';
import { rpcTransports } from './rpc-transports.ts';
import { loadScenarios } from './scenario.ts';
import { wantEveryEvent } from './tables.ts';

/** Starts the service, whose first account receives every event. */
export function onLocalPayments(): void {
  onService();
  beforeAll(() => wantEveryEvent(tables));
}

// biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary fields of the record.
export type RecordJson = any;

const requests = new Map(
  loadScenarios().map(({ name, request }) => [name.slice(3), JSON.parse(request) as RequestJson]),
);
/** The request of a scenario, by its name without its number. */
export const request = (name: string): RequestJson => {
  const found = requests.get(name);
  if (!found) throw new Error(`no scenario ${name}`);
  return found;
};
/** The same with a description that the sandbox obeys. */
export const described = (name: string, order: string) =>
  withField(request(name), 'description', `sandbox:${order}`);

/** Makes a payment. */
export async function pay(body: RequestJson, protocol: Protocol = 'rest'): Promise<RecordJson> {
  const reply = await clients.create(protocol, body, headersOne());
  expect([reply.reason, reply.fields]).toEqual([undefined, []]);
  return JSON.parse(reply.record);
}

/** Reads a payment. */
export async function read({ id }: RecordJson): Promise<RecordJson> {
  const response = await fetch(`${server.url}/v1/payments/${id}`, { headers: headersOne() });
  return response.json();
}

/** Makes an operation on a payment. @returns the response's body. */
export async function call(verb: string, { id }: RecordJson, body: object = {}): Promise<RecordJson> {
  const headers = { ...headersOne(), 'content-type': 'application/json' };
  const url = `${server.url}/v1/payments/${id}/${verb}`;
  return (await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })).json();
}

/** The group of a payment's method. */
export const detailOf = ({ payment_method: { payment_method_detail } }: RecordJson) =>
  payment_method_detail.bank_transfer ?? payment_method_detail.ticket ?? payment_method_detail.wallet;

/** Presses a button on the sandbox's page for a payment. */
export async function press(payment: RecordJson, action: string): Promise<void> {
  const { document_url, redirect_url } = detailOf(payment);
  const page = await fetch(`${document_url ?? redirect_url}/${action}`, {
    method: 'POST',
    redirect: 'manual',
  });
  expect(page.status).toBe(303);
}

/** The states of a payment and its transactions. */
export const statesOf = ({ status, sub_status, transactions_history }: RecordJson) =>
  [
    `${status}/${sub_status}`,
    ...transactions_history.map((one: RecordJson) => `${one.type} ${one.status} ${one.response_code}`),
  ].join(', ');

/** Waits until a payment has its states. The sandbox's notifications arrive at once. */
export async function becomes(payment: RecordJson, states: string, timeout = 15_000): Promise<RecordJson> {
  await vi.waitFor(async () => expect(statesOf(await read(payment))).toBe(states), { timeout, interval: 50 });
  return read(payment);
}

/** The types of a payment's events, in order. */
export const eventsOf = async ({ id }: RecordJson) =>
  (await tables.query('SELECT type FROM event WHERE payment_id = $1 ORDER BY sequence', [id])).map(
    ({ type }) => type,
  );

/** Returns the alarms that the log has for a payment. */
export const alarmsOf = ({ id }: RecordJson) =>
  server.logLines
    .map((line) => JSON.parse(line))
    .filter((line) => line.alarm !== undefined && JSON.stringify(line).includes(id))
    .map(({ alarm }) => alarm);

export const OPEN = 'READY_TO_PAY/CREATED, PURCHASE CREATED SUCCEEDED';
export const PAID = 'SUCCEEDED/APPROVED, PURCHASE SUCCEEDED SUCCEEDED';
export const EXPIRED = 'EXPIRED/EXPIRED, PURCHASE EXPIRED EXPIRED';
export const CANCELED =
  'CANCELED/CANCELED, PURCHASE EXPIRED CANCELED_BY_MERCHANT, CANCEL SUCCEEDED SUCCEEDED';

const encode = jsonEncoder(PaymentSchema);

/** Refunds a part of a payment over a protocol. */
export async function refund(payment: RecordJson, value: string, protocol: Protocol): Promise<RecordJson> {
  const { currency } = payment.amount;
  if (protocol === 'rest') return call('refund', payment, { amount: { currency, value } });
  const { transports, close } = rpcTransports(server.url);
  const client = createClient(PaymentService, transports[protocol]);
  const amount = { currency, value: { value } };
  const refunded = await client.refundPayment({ paymentId: payment.id, amount }, { headers: headersOne() });
  close();
  return JSON.parse(encode(refunded));
}
