import { randomUUID } from 'node:crypto';
import { ConnectError } from '@connectrpc/connect';
import { beforeAll, describe, expect, it } from 'vitest';
import { ErrorInfoSchema } from '#gen/google/rpc/error_details_pb.js';
import { CustomerService } from '#gen/payments/v1/customer_service_pb.js';
import { onService, server, tables } from '../support/on-service.ts';
import { cardPayment, headersOne } from '../support/payment-requests.ts';
import { type Call, ONE, PUBLIC_ONE, restCalls, rpcClients, TWO, UNKNOWN } from './calls.ts';

let call: Call;

onService();
beforeAll(async () => {
  call = restCalls(server.url);
});

const PERSON = {
  first_name: 'Ana',
  last_name: 'Gómez',
  gender: 'F',
  date_of_birth: '1990-02-28',
  email: 'ana@example.com',
  nationality: 'CO',
  country: 'CO',
  document: { document_type: 'CC', document_number: '1032456789' },
  phone: { country_code: '57', number: '3001234567' },
  billing_address: {
    address_line_1: 'Calle 1',
    address_line_2: null,
    country: 'CO',
    state: 'Antioquia',
    city: 'Medellín',
    zip_code: '050001',
    neighborhood: null,
  },
  shipping_address: null,
  merchant_customer_created_at: '2020-01-02T03:04:05.000000Z',
  metadata: [{ key: 'tier', value: 'gold' }],
};
const create = (body: object = {}, headers: Record<string, string> = ONE) =>
  call('POST', '/v1/customers', { merchant_customer_id: randomUUID(), ...body }, headers);

describe('customers over REST', () => {
  it('a created customer has every field that was sent, and is found by ID and by merchant_customer_id', async () => {
    const merchantId = randomUUID();
    const made = await create({ ...PERSON, merchant_customer_id: merchantId });
    expect([made.status, made.headers.get('location')]).toEqual([201, `/v1/customers/${made.json.id}`]);
    expect(made.json).toMatchObject({ ...PERSON, merchant_customer_id: merchantId });
    expect(made.json.created_at).toMatch(/^\d{4}-.*\.\d{6}Z$/);
    expect((await call('GET', `/v1/customers/${made.json.id}`)).json).toEqual(made.json);
    const found = await call('GET', `/v1/customers?merchant_customer_id=${merchantId}`);
    expect([found.status, found.json]).toEqual([200, made.json]);
  });

  it('a customer’s record contains every field, null if it was not sent', async () => {
    const { json } = await create();
    const { id, merchant_customer_id, created_at, updated_at, account_id, ...rest } = json;
    expect(rest).toEqual(
      Object.fromEntries(Object.keys(PERSON).map((name) => [name, name === 'metadata' ? [] : null])),
    );
  });

  it('a customer’s name may be in any script and may contain emoji', async () => {
    const names = { first_name: '👩‍🎤 Zoë', last_name: 'عبد الله ‏كريم' };
    const { json } = await create({ ...names, metadata: [{ key: '🔑', value: 'ערך' }] });
    expect((await call('GET', `/v1/customers/${json.id}`)).json).toMatchObject({
      ...names,
      metadata: [{ key: '🔑', value: 'ערך' }],
    });
  });

  it('an update changes only the fields it sends: null clears a field, and metadata is replaced', async () => {
    const { json } = await create(PERSON);
    const changed = await call('PATCH', `/v1/customers/${json.id}`, {
      first_name: 'Eva',
      email: null,
      document: null,
      phone: { country_code: '1', number: '5550100' },
      metadata: [],
      id: UNKNOWN,
    });
    expect(changed.status).toBe(200);
    expect(changed.json).toEqual({
      ...json,
      first_name: 'Eva',
      email: null,
      document: null,
      phone: { country_code: '1', number: '5550100' },
      metadata: [],
      updated_at: changed.json.updated_at,
    });
    expect((await call('PATCH', `/v1/customers/${json.id}`, {})).json).toEqual({
      ...changed.json,
      updated_at: expect.any(String),
    });
  });

  it('an empty string in an update counts as an absent field, over REST and RPC', async () => {
    const { json } = await create(PERSON);
    const empty = { email: '', country: '', date_of_birth: '' };
    const byRest = await call('PATCH', `/v1/customers/${json.id}`, empty);
    expect([byRest.status, byRest.json]).toEqual([200, { ...json, updated_at: expect.any(String) }]);
    const byRpc = await call('POST', '/payments.v1.CustomerService/UpdateCustomer', {
      id: json.id,
      ...empty,
    });
    expect([byRpc.status, byRpc.json.email]).toEqual([200, json.email]);
  });

  it('two concurrent updates of a customer are both kept', async () => {
    const { json } = await create();
    await Promise.all([
      call('PATCH', `/v1/customers/${json.id}`, { first_name: 'Ana' }),
      call('PATCH', `/v1/customers/${json.id}`, { last_name: 'Gómez' }),
    ]);
    const after = await call('GET', `/v1/customers/${json.id}`);
    expect(after.json).toMatchObject({ first_name: 'Ana', last_name: 'Gómez' });
  });

  it('a customer’s data completes the payments that name the customer, until the customer is deleted', async () => {
    const { json } = await create(PERSON);
    const pay = () =>
      call('POST', '/v1/payments', { ...cardPayment(), customer_payer: { id: json.id } }, headersOne());
    const paid = await pay();
    expect(paid.json.customer_payer).toMatchObject({
      id: json.id,
      merchant_customer_id: json.merchant_customer_id,
      first_name: 'Ana',
      document: PERSON.document,
    });
    expect((await call('DELETE', `/v1/customers/${json.id}`)).status).toBe(204);
    const refused = await pay();
    expect([refused.status, refused.json.code]).toEqual([400, 'CUSTOMER_NOT_FOUND']);
  });

  it('a deleted customer leaves no personal data in its row, and its merchant_customer_id is free again', async () => {
    const { json } = await create(PERSON);
    expect((await call('DELETE', `/v1/customers/${json.id}`)).status).toBe(204);
    for (const [method, body] of [['GET'], ['PATCH', { first_name: 'Eva' }], ['DELETE']] as const) {
      const gone = await call(method, `/v1/customers/${json.id}`, body);
      expect([method, gone.status, gone.json.code]).toEqual([method, 404, 'CUSTOMER_NOT_FOUND']);
    }
    const [row] = await tables.query('SELECT payer, metadata FROM customer WHERE id = $1', [json.id]);
    expect(row).toEqual({ payer: Buffer.alloc(0), metadata: '[]' });
    expect((await create({ merchant_customer_id: json.merchant_customer_id })).status).toBe(201);
  });

  it('a request repeated with the same key creates one customer, and a different request is refused', async () => {
    const headers = { ...ONE, 'x-idempotency-key': randomUUID() };
    const body = { ...PERSON, merchant_customer_id: randomUUID() };
    const [first, ...repeats] = await Promise.all([1, 2, 3].map(() => create(body, headers)));
    for (const repeat of repeats) expect([repeat.status, repeat.json]).toEqual([201, first?.json]);
    const replayed = await create(body, headers);
    expect(replayed.headers.get('idempotent-replayed')).toBe('true');
    expect(replayed.json).toEqual(first?.json);
    const other = await create({ ...body, first_name: 'Eva' }, headers);
    expect([other.status, other.json.code]).toEqual([422, 'IDEMPOTENCY_KEY_REUSED']);
    const elsewhere = await create(body, { ...TWO, 'x-idempotency-key': headers['x-idempotency-key'] });
    expect(elsewhere.status).toBe(201);
  });

  it('a deletion erases the customer from stored responses, but not other customers', async () => {
    const made = [];
    for (const id of ['deleted', 'kept']) {
      const headers = { ...ONE, 'x-idempotency-key': randomUUID() };
      const body = { ...PERSON, merchant_customer_id: `${id} ${randomUUID()}` };
      made.push({ headers, body, first: await create(body, headers) });
    }
    const [{ headers, body, first }, kept] = made as [(typeof made)[0], (typeof made)[0]];
    expect((await call('DELETE', `/v1/customers/${first.json.id.toUpperCase()}`)).status).toBe(204);
    const nothing = Object.fromEntries(
      Object.keys(first.json).map((name) => [name, name === 'metadata' ? [] : null]),
    );
    const { id, account_id, created_at, updated_at } = first.json;
    const repeat = await create(body, headers);
    expect([repeat.status, repeat.headers.get('idempotent-replayed')]).toEqual([201, 'true']);
    expect(repeat.json).toEqual({ ...nothing, id, account_id, created_at, updated_at });
    expect((await create({ ...body, first_name: 'Eva' }, headers)).json.code).toBe('IDEMPOTENCY_KEY_REUSED');
    expect((await create(kept.body, kept.headers)).json).toEqual(kept.first.json);
    const holding = (text: string) =>
      tables.query('SELECT FROM replayed_call WHERE position($1::bytea IN response) > 0', [
        Buffer.from(text),
      ]);
    expect(await holding(kept.body.merchant_customer_id)).toHaveLength(1);
    expect(await holding(body.merchant_customer_id)).toEqual([]);
  });

  it('a merchant_customer_id that another customer uses is refused on create and update', async () => {
    const [one, two] = [await create(), await create()];
    const { merchant_customer_id } = one.json;
    const again = await create({ merchant_customer_id });
    expect([again.status, again.json.code, again.json.errors[0].field]).toEqual([
      ...[400, 'CUSTOMER_ID_DUPLICATED', 'merchant_customer_id'],
    ]);
    const changed = await call('PATCH', `/v1/customers/${two.json.id}`, { merchant_customer_id });
    expect([changed.status, changed.json.code]).toEqual([400, 'CUSTOMER_ID_DUPLICATED']);
    expect((await create({ merchant_customer_id }, TWO)).status).toBe(201);
  });

  it.each([
    ['merchant_customer_id', { merchant_customer_id: null }],
    ['merchant_customer_id', { merchant_customer_id: 'x'.repeat(256) }],
    ['merchant_customer_id', { merchant_customer_id: 'a\0b' }],
    ['email', { email: 'nobody' }],
    ['date_of_birth', { date_of_birth: '2023-02-29' }],
    ['country', { country: 'ZZ' }],
    ['billing_address.country', { billing_address: { country: 'ZZ' } }],
    ['document.document_number', { document: { document_number: '1'.repeat(41) } }],
    ['metadata', { metadata: Array.from({ length: 51 }, (_, i) => ({ key: `k${i}`, value: '' })) }],
    ['metadata[0].key', { metadata: [{ key: 'k'.repeat(49), value: '' }] }],
    ['metadata[0].value', { metadata: [{ key: 'k', value: 'v'.repeat(513) }] }],
    ['first_name', { first_name: 7 }],
  ])('a customer with a bad field is not created, and the error names the field: %s', async (field, body) => {
    const refused = await create(body);
    expect([refused.status, refused.json.code]).toEqual([400, 'INVALID_PARAMETERS']);
    expect(refused.json.errors[0].field).toBe(field);
  });

  it('an update is validated like a creation, and cannot clear merchant_customer_id', async () => {
    const { json } = await create();
    for (const [field, value] of [
      ['merchant_customer_id', null],
      ['merchant_customer_id', ''],
      ['date_of_birth', '2023-02-29'],
      ['email', 'nobody'],
    ] as const) {
      const refused = await call('PATCH', `/v1/customers/${json.id}`, { [field]: value });
      expect([refused.status, refused.json.errors[0].field]).toEqual([400, field]);
    }
  });

  it('a customer cannot be found by another account or without the secret key', async () => {
    const { json } = await create();
    for (const [method, body] of [['GET'], ['PATCH', {}], ['DELETE']] as const) {
      const foreign = await call(method, `/v1/customers/${json.id}`, body, TWO);
      expect([foreign.status, foreign.json.code]).toEqual([404, 'CUSTOMER_NOT_FOUND']);
      const open = await call(method, `/v1/customers/${json.id}`, body, PUBLIC_ONE);
      expect([open.status, open.json.code]).toEqual([401, 'INVALID_CREDENTIALS']);
    }
    const found = await call(
      'GET',
      `/v1/customers?merchant_customer_id=${json.merchant_customer_id}`,
      undefined,
      TWO,
    );
    expect([found.status, found.json.code]).toEqual([404, 'CUSTOMER_NOT_FOUND']);
    expect((await create({ account_id: '22222222-2222-4222-8222-222222222222' })).status).toBe(403);
  });

  it.each(['nobody', UNKNOWN])('reading a customer with the ID %s returns 404', async (id) => {
    expect((await call('GET', `/v1/customers/${id}`)).status).toBe(404);
  });
});

describe('customers over RPC', () => {
  it('a customer can be created, read, found, updated by mask and deleted over every RPC protocol', async () => {
    const { clients, close } = rpcClients(server.url, CustomerService);
    const options = { headers: ONE };
    for (const { protocol, client } of clients) {
      const merchantCustomerId = `${protocol} ${randomUUID()}`;
      const made = await client.createCustomer(
        { merchantCustomerId, firstName: 'Ana', email: 'ana@example.com' },
        options,
      );
      expect(await client.getCustomer({ id: made.id }, options)).toEqual(made);
      expect(await client.findCustomer({ merchantCustomerId }, options)).toEqual(made);
      const { id } = made;
      const changed = await client.updateCustomer({ id, firstName: 'Eva' }, options);
      expect(changed).toMatchObject({ firstName: 'Eva', email: 'ana@example.com' });
      const updateMask = { paths: ['email', 'last_name'] };
      const cleared = await client.updateCustomer({ id, lastName: 'Gómez', updateMask }, options);
      expect([cleared.email, cleared.lastName, cleared.firstName]).toEqual([undefined, 'Gómez', 'Eva']);
      await client.deleteCustomer({ id }, options);
      const gone = await client.getCustomer({ id }, options).catch(ConnectError.from);
      expect(gone).toMatchObject({ rawMessage: 'id: does not exist in this account' });
      expect((gone as ConnectError).findDetails(ErrorInfoSchema)[0]?.reason).toBe('CUSTOMER_NOT_FOUND');
    }
    close();
  });

  it('an update mask with a field that cannot be changed is refused over every RPC protocol', async () => {
    const { clients, close } = rpcClients(server.url, CustomerService);
    for (const { client } of clients) {
      const { id } = await client.createCustomer({ merchantCustomerId: randomUUID() }, { headers: ONE });
      for (const paths of [['id'], ['created_at'], ['nothing'], ['document.document_type']]) {
        const refused = client.updateCustomer({ id, updateMask: { paths } }, { headers: ONE });
        await expect(refused).rejects.toThrow('update_mask: contains a field that cannot be changed');
      }
    }
    close();
  });
});
