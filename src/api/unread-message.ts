import { randomBytes } from 'node:crypto';
import {
  create,
  createFileRegistry,
  type DescMessage,
  fromBinary,
  type Message,
  toBinary,
} from '@bufbuild/protobuf';
import {
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FileDescriptorProtoSchema,
} from '@bufbuild/protobuf/wkt';
import { parseJson } from '#src/wire/parse-json.ts';
import { readBinary } from '#src/wire/read-binary.ts';
import { jsonDecoder } from '#src/wire/wire-json-decode.ts';
import { toConnectError, toServiceError } from './errors.ts';
import { checkRest } from './require-valid.ts';

/*
 * Connect decodes every message without limits on its content. We therefore give it a message type without fields: the
 * content stays in unknown fields until we read it with our own rules and limits.
 */

/**
 * The field that contains a request decoded from JSON: a secret mark, then the message in binary. Its number is the
 * highest possible, which no message of ours uses.
 */
const FIELD = { name: 'read', jsonName: 'read', number: 2 ** 29 - 1 };
const MARK = randomBytes(16);
const file = create(FileDescriptorProtoSchema, {
  name: 'unread.proto',
  syntax: 'proto3',
  messageType: [
    {
      name: 'Unread',
      field: [
        { ...FIELD, label: FieldDescriptorProto_Label.OPTIONAL, type: FieldDescriptorProto_Type.BYTES },
      ],
    },
  ],
});

/** The message type that Connect uses for every request. */
export const UnreadSchema = createFileRegistry(file, () => undefined).getMessage('Unread') as DescMessage;

/** Makes Connect read a binary request as a message of unknown fields. */
export const UNREAD_BINARY = { readUnknownFields: true, recursionLimit: 1 };

/**
 * Makes Connect read a JSON request through a text decoder that applies REST's rules: exact numbers, errors that name
 * the field, no duplicate values and no unknown enum values.
 */
export function unreadJson(input: DescMessage): object {
  const decode = jsonDecoder(input, { protobufJson: true, check: checkRest(input) });
  const textDecoder = {
    decode(bytes: Uint8Array): string {
      try {
        const read = Buffer.concat([MARK, toBinary(input, decode(parseJson(bytes)))]);
        return JSON.stringify({ [FIELD.jsonName]: read.toString('base64') });
      } catch (error) {
        throw toConnectError(toServiceError(error));
      }
    },
  };
  return { textDecoder };
}

/**
 * Decodes a request that Connect read as UnreadSchema.
 *
 * @throws ServiceError as readBinary does.
 */
export function readUnread(input: DescMessage, unread: Message): Message {
  const { read } = unread as Message & { readonly read: Uint8Array };
  if (MARK.equals(read.subarray(0, MARK.length))) return fromBinary(input, read.subarray(MARK.length));
  return readBinary(input, toBinary(UnreadSchema, unread));
}
