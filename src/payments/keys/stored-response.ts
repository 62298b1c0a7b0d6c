import {
  create,
  createFileRegistry,
  type DescFile,
  type DescMessage,
  fromBinary,
  toBinary,
} from '@bufbuild/protobuf';
import { type FileDescriptorProto, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { type Payment, PaymentSchema } from '#gen/payments/v1/payment_pb.js';
import type { Database } from '#src/store/engine/database.ts';
import { readResponseSchema, storeResponseSchema } from '#src/store/tables/response-schemas.ts';
import { jsonEncoder } from '#src/wire/wire-json-encode.ts';
import { decodeRecord } from '../stored-record.ts';
import type { Replayable } from './replay.ts';

/**
 * Responses in the form stored for replay. A response is its record in REST JSON, so only a reference to the schema
 * that was used to render it is stored along with the record: NUL and the schema's digest. A release with a different
 * schema renders the record with the stored schema, and so reproduces the response byte for byte.
 */
export type StoredResponses = {
  /** The stored form of all responses of this release: the current record in this release's schema. */
  readonly own: Uint8Array;
  /**
   * Returns the REST body of a stored response; undefined if this release renders the record identically.
   *
   * @param record the encoded record that the response shows.
   */
  body(stored: Uint8Array, record: Uint8Array): Promise<Uint8Array | undefined>;
};

/** A response to a call. */
export type PaymentResponse = {
  readonly record: Payment;
  /** The REST body; undefined if this release renders the record identically. */
  readonly body: Uint8Array | undefined;
};

/** The response to a call under a key, which never changes. */
export type KeyedResponse = Replayable<PaymentResponse>;

/** Reads a stored response, with the record that it shows. */
export async function readResponse(
  responses: StoredResponses,
  { record, response }: { readonly record: Uint8Array; readonly response: Uint8Array },
): Promise<PaymentResponse> {
  const body = await responses.body(response, record);
  return { record: decodeRecord(record), body };
}

/** Renders an encoded record as a REST body. */
type Render = (record: Uint8Array) => Uint8Array;

/** First byte of a response that refers to its schema. */
const BY_SCHEMA = 0;

/**
 * Opens the stored responses of a migrated database.
 *
 * @param schema payments.v1.Payment, by default in this release's version.
 */
export async function openStoredResponses(
  database: Database,
  schema: DescMessage = PaymentSchema,
): Promise<StoredResponses> {
  const digest = await storeResponseSchema(database, schemaDescriptors(schema));
  const own = Buffer.concat([Buffer.of(BY_SCHEMA), digest]);
  const renders = new Map<string, Render>();
  const renderOf = async (asked: Buffer): Promise<Render> => {
    const name = asked.toString('hex');
    const known = renders.get(name);
    if (known) return known;
    const descriptors = await readResponseSchema(database, asked);
    if (!descriptors) throw new Error(`a stored response refers to schema ${name}, which is missing`);
    const render = renderBy(descriptors);
    renders.set(name, render);
    return render;
  };
  return {
    own,
    async body(stored, record) {
      if (own.equals(stored)) return undefined;
      const render = await renderOf(Buffer.from(stored.subarray(1)));
      return render(record);
    },
  };
}

function renderBy(descriptors: Uint8Array): Render {
  const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, descriptors));
  const schema = registry.getMessage(PaymentSchema.typeName);
  if (!schema) throw new Error(`a stored schema lacks ${PaymentSchema.typeName}`);
  const encodeJson = jsonEncoder(schema);
  return (record) => Buffer.from(encodeJson(decodeRecord(record, schema)));
}

/** Returns the descriptors of a message's file and all its imports, dependencies first: an encoded FileDescriptorSet. */
export function schemaDescriptors({ file }: DescMessage): Uint8Array {
  const files = new Map<string, FileDescriptorProto>();
  const add = ({ dependencies, proto }: DescFile) => {
    dependencies.forEach(add);
    files.set(proto.name, proto);
  };
  add(file);
  return toBinary(FileDescriptorSetSchema, create(FileDescriptorSetSchema, { file: [...files.values()] }));
}
