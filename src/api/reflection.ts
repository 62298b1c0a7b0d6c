import type { DescExtension, DescFile, DescMessage, DescService } from '@bufbuild/protobuf';
import { toBinary } from '@bufbuild/protobuf';
import { nestedTypes } from '@bufbuild/protobuf/reflect';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError, type ConnectRouter, type HandlerContext } from '@connectrpc/connect';
import { ServerReflection, type ServerReflectionRequest } from '#gen/grpc/reflection/v1/reflection_pb.js';
import {
  type ServerReflectionRequest as ServerReflectionRequestV1Alpha,
  ServerReflection as ServerReflectionV1Alpha,
} from '#gen/grpc/reflection/v1alpha/reflection_pb.js';
import { connectionOf } from './rpc.ts';

/** Limit on the requests in one stream. A client that reads everything sends one for each service or file. */
const MAX_QUESTIONS = 100;
/**
 * Limit on the total bytes of the responses on one connection: enough to send all files and their imports about a
 * hundred times.
 */
const MAX_BYTES_PER_CONNECTION = 4 * 2 ** 20;

/**
 * The gRPC server reflection protocol, v1 and v1alpha, which differ only in their names. Tools such as `grpcurl` and
 * `buf curl` use it to discover the server's services without .proto files.
 *
 * @param services the services to list. Clients can request everything in their files and imports.
 */
export function reflectionRoutes(services: readonly DescService[]): (router: ConnectRouter) => void {
  const respond = createResponder(services);
  const bytesOn = new WeakMap<object, number>();

  async function* serverReflectionInfo<R extends ServerReflectionRequest | ServerReflectionRequestV1Alpha>(
    requests: AsyncIterable<R>,
    context: HandlerContext,
  ) {
    const connection = connectionOf(context);
    let questions = 0;
    for await (const request of requests) {
      if (++questions > MAX_QUESTIONS)
        throw new ConnectError('too many reflection requests', Code.ResourceExhausted);
      const messageResponse = respond(request.messageRequest);
      const bytes = (bytesOn.get(connection) ?? 0) + sizeOf(request, messageResponse);
      if (bytes > MAX_BYTES_PER_CONNECTION) {
        throw new ConnectError('too many reflection requests on this connection', Code.ResourceExhausted);
      }
      bytesOn.set(connection, bytes);
      yield { validHost: request.host, originalRequest: request, messageResponse };
    }
  }

  return (router) => {
    router.service(ServerReflection, { serverReflectionInfo });
    router.service(ServerReflectionV1Alpha, { serverReflectionInfo });
  };
}

/**
 * Estimates a response's size in bytes: the host and the request, which it repeats, and the files. The estimate for the
 * rest is generous.
 */
function sizeOf(
  request: ServerReflectionRequest | ServerReflectionRequestV1Alpha,
  response: ReflectionResponse,
): number {
  const { value = '' } = request.messageRequest;
  const asked = typeof value === 'string' ? value : value.containingType;
  const files = response.case === 'fileDescriptorResponse' ? response.value.fileDescriptorProto : [];
  let bytes = SMALL_RESPONSE_BYTES + 2 * Buffer.byteLength(request.host) + 2 * Buffer.byteLength(asked);
  for (const file of files) bytes += file.length + FIELD_BYTES;
  return bytes;
}

const SMALL_RESPONSE_BYTES = 512;
/** Overhead of a length-delimited field, in bytes. */
const FIELD_BYTES = 8;

type ReflectionResponse = ReturnType<ReturnType<typeof createResponder>>;

type Question = (ServerReflectionRequest | ServerReflectionRequestV1Alpha)['messageRequest'];

function createResponder(services: readonly DescService[]) {
  const index = indexFiles(services.map((service) => service.file));
  const listed = services
    .map((service) => ({ name: service.typeName }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));

  return (question: Question) => {
    switch (question.case) {
      case 'listServices':
        return { case: 'listServicesResponse', value: { service: listed } } as const;
      case 'fileByFilename':
        return files(index.byName.get(question.value));
      case 'fileContainingSymbol':
        return files(index.bySymbol.get(question.value));
      case 'fileContainingExtension': {
        const { containingType, extensionNumber } = question.value;
        return files(index.extensions.get(containingType)?.get(extensionNumber)?.file);
      }
      case 'allExtensionNumbersOfType': {
        const known = index.extensions.get(question.value);
        if (!known) return notFound();
        const value = {
          baseTypeName: question.value,
          extensionNumber: [...known.keys()].sort((a, b) => a - b),
        };
        return { case: 'allExtensionNumbersResponse', value } as const;
      }
      case undefined:
        throw new ConnectError('the request is empty', Code.InvalidArgument);
    }
  };
}

function files(file: DescFile | undefined) {
  if (!file) return notFound();
  const fileDescriptorProto = withImports([file]).map(encoded);
  return { case: 'fileDescriptorResponse', value: { fileDescriptorProto } } as const;
}

const encodedFiles = new WeakMap<DescFile, Uint8Array<ArrayBuffer>>();

/** Encodes each file only once: encoding is most of a response's cost. */
function encoded(file: DescFile): Uint8Array<ArrayBuffer> {
  return encodedFiles.getOrInsertComputed(file, ({ proto }) => toBinary(FileDescriptorProtoSchema, proto));
}

function notFound() {
  return { case: 'errorResponse', value: { errorCode: Code.NotFound, errorMessage: 'not found' } } as const;
}

/** Returns the given files, then all their imports, without duplicates. */
function withImports(roots: readonly DescFile[]): DescFile[] {
  const all = new Set(roots);
  // The iteration also visits the files that are added during it.
  for (const file of all) for (const imported of file.dependencies) all.add(imported);
  return [...all];
}

function indexFiles(roots: readonly DescFile[]) {
  const byName = new Map<string, DescFile>();
  const bySymbol = new Map<string, DescFile>();
  /** Keyed by the extended message, then by field number. Includes messages without extensions. */
  const extensions = new Map<string, Map<number, DescExtension>>();
  for (const file of withImports(roots)) {
    byName.set(file.proto.name, file);
    for (const type of nestedTypes(file)) {
      bySymbol.set(type.typeName, file);
      switch (type.kind) {
        case 'message':
          extensions.getOrInsert(type.typeName, new Map());
          for (const name of memberNames(type)) bySymbol.set(`${type.typeName}.${name}`, file);
          break;
        case 'enum': {
          // An enum's values are siblings of the enum, not its members (descriptor.proto).
          const scope = type.typeName.slice(0, -type.name.length);
          for (const value of type.values) bySymbol.set(scope + value.name, file);
          break;
        }
        case 'service':
          for (const method of type.methods) bySymbol.set(`${type.typeName}.${method.name}`, file);
          break;
        case 'extension':
          extensions.getOrInsert(type.extendee.typeName, new Map()).set(type.number, type);
          break;
      }
    }
  }
  return { byName, bySymbol, extensions };
}

function memberNames(message: DescMessage): string[] {
  return [...message.fields, ...message.oneofs].map((member) => member.name);
}
