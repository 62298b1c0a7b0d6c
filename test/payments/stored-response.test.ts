import { readFileSync } from 'node:fs';
import { createFileRegistry, type DescMessage, fromBinary } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { describe, expect, it } from 'vitest';
import { PaymentSchema } from '#gen/payments/v1/payment_pb.js';
import { openStoredResponses } from '#src/payments/keys/stored-response.ts';
import { decodeRecord } from '#src/payments/stored-record.ts';
import type { Database } from '#src/store/engine/database.ts';
import { jsonEncoder } from '#src/wire/wire-json-encode.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';

onOwnDatabase({ empties: 'response_schema' });

const file = (name: string) => readFileSync(new URL(`stored-responses/${name}`, import.meta.url));
/** A stored payment, and the body of its response. */
const RECORD = file('record.bin');
const BODY = `${file('body.txt')}`;
/** The schema of the release that wrote the response. */
const DESCRIPTORS = file('descriptors.bin');

const payment = decodeRecord(RECORD);
const encodeJson = jsonEncoder(PaymentSchema);

/** The schema of a release in which a field had another name of the same length. */
function schemaWith(name: string, was: string): DescMessage {
  const renamed = DESCRIPTORS.toString('latin1').replaceAll(name, was);
  const set = fromBinary(FileDescriptorSetSchema, Buffer.from(renamed, 'latin1'));
  return createFileRegistry(set).getMessage(PaymentSchema.typeName) as DescMessage;
}

describe('a stored response', () => {
  it('a stored response holds no payment data: it names the schema for writing its record as JSON', async () => {
    const responses = await openStoredResponses(database);
    expect(responses.own).toHaveLength(9);
    expect(await responses.body(responses.own, RECORD)).toBeUndefined();
    expect(JSON.parse(encodeJson(payment))).toMatchObject(JSON.parse(BODY));
  });

  it('a stored response is rendered with the schema of its release, whether older or newer', async () => {
    const before = await openStoredResponses(database, schemaWith('nationality', 'citizenship'));
    const now = await openStoredResponses(database);
    const bodyBefore = BODY.replaceAll('"nationality"', '"citizenship"');
    expect(bodyBefore).not.toBe(BODY);
    expect(`${await now.body(before.own, RECORD)}`).toBe(bodyBefore);
    expect(`${await before.body(now.own, RECORD)}`).toBe(encodeJson(payment));
    expect(await tables.query('SELECT FROM response_schema')).toHaveLength(2);
  });

  it('a response stored on 2026-11-22 is still rendered as it was then', async () => {
    // If this fails, the JSON encoder has changed its output for a schema with which responses are stored.
    // Its output for that schema must stay the same. The digest is made up, so that the schema counts as
    // another release's.
    const digest = Buffer.from('0102030405060708', 'hex');
    await tables.query('INSERT INTO response_schema VALUES ($1, $2)', [digest, DESCRIPTORS]);
    const responses = await openStoredResponses(database);
    const stored = Buffer.concat([Buffer.of(0), digest]);
    for (let times = 0; times < 2; times++) expect(`${await responses.body(stored, RECORD)}`).toBe(BODY);
  });

  it('a stored response cannot be returned without its schema', async () => {
    const responses = await openStoredResponses(database);
    const stored = Buffer.from('00aaaaaaaaaaaaaaaa', 'hex');
    await expect(responses.body(stored, RECORD)).rejects.toThrow('schema aaaaaaaaaaaaaaaa, which is missing');
  });
});

it('a schema is stored and read once: its own release adds it at startup, and others read it when needed', async () => {
  const names: string[] = [];
  const query: Database['query'] = (statement, values) => {
    names.push(statement.name);
    return database.query(statement, values);
  };
  const noting = { ...database, query };
  const before = await openStoredResponses(noting, schemaWith('nationality', 'citizenship'));
  await openStoredResponses(noting, schemaWith('nationality', 'citizenship'));
  expect(names).toEqual(['add_response_schema', 'add_response_schema']);
  expect(await tables.query('SELECT FROM response_schema')).toHaveLength(1);
  const now = await openStoredResponses(noting);
  names.length = 0;
  for (let times = 0; times < 2; times++) await now.body(before.own, RECORD);
  expect(names).toEqual(['read_response_schema']);
});

it('replicas that start together store their schema once', async () => {
  await Promise.all([1, 2, 3, 4].map(() => openStoredResponses(database)));
  expect(await tables.query('SELECT FROM response_schema')).toHaveLength(1);
});
