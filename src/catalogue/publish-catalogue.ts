import { createHash } from 'node:crypto';
import { fromBinary, type JsonValue, toBinary, toJson } from '@bufbuild/protobuf';
import { type Catalogue, CatalogueSchema } from '#gen/payments/v1/catalogue_pb.js';
import { schemaDescriptors } from '#src/payments/keys/stored-response.ts';
import type { Database, Queries } from '#src/store/engine/database.ts';
import { INSTALLATION } from '#src/store/tables/audit-log.ts';
import {
  publishVersion,
  readVersion,
  type StoredVersion,
  type VersionEntry,
  type VersionSource,
} from '#src/store/tables/catalogue-versions.ts';
import { storeResponseSchema } from '#src/store/tables/response-schemas.ts';

/**
 * The format of the catalogues that this release writes, and the newest that it runs. Raise it with each field that
 * restricts payments: an earlier release would ignore the field and send money to the wrong place.
 *
 * - 1: `retired` and `account_ids` of connections.
 */
export const CATALOGUE_FORMAT = 1;

/** A published version with its catalogue. */
export type PublishedCatalogue = VersionEntry & { readonly catalogue: Catalogue };

/** Thrown for a version that a later release has written with restrictions that this release does not know. */
export class UnknownFormatError extends Error {
  override readonly name = 'UnknownFormatError';

  constructor({ version, format }: Pick<StoredVersion, 'version' | 'format'>) {
    super(`version ${version} of the catalogue has format ${format}, which needs a later release`);
  }
}

/** Reads a version with its catalogue; undefined if there is none. @throws UnknownFormatError. */
export async function readPublished(
  queries: Queries,
  version: number,
): Promise<PublishedCatalogue | undefined> {
  const stored = await readVersion(queries, version);
  return stored && decodeVersion(stored);
}

/** Decodes a version's catalogue. @throws UnknownFormatError. */
export function decodeVersion(stored: StoredVersion): PublishedCatalogue {
  if (stored.format > CATALOGUE_FORMAT) throw new UnknownFormatError(stored);
  const { format: _format, schema: _schema, catalogue, ...entry } = stored;
  return { ...entry, catalogue: fromBinary(CatalogueSchema, catalogue) };
}

/** A catalogue to publish, checked and known to open. */
export type Publication = {
  readonly catalogue: Catalogue;
  /** Identities of its open connections by id, for which these stand from now on; absent for the sandbox's. */
  readonly identities?: ReadonlyMap<string, string>;
  /** The version that must be in force; 0 if there must be none. */
  readonly expected: number;
  /** As in NewVersion. */
  readonly revision?: bigint | undefined;
  readonly source: VersionSource;
  readonly actor: string;
  readonly comment: string;
};

/**
 * Publishes a catalogue as the next version, with its entry in the audit log.
 *
 * @returns the new version; undefined if another version or revision than the expected one is in force.
 */
export async function publishCatalogue(
  database: Database,
  { catalogue, identities = new Map(), expected, revision, source, actor, comment }: Publication,
): Promise<number | undefined> {
  const schema = await storeResponseSchema(database, schemaDescriptors(CatalogueSchema));
  const detail = comment === '' ? source : `${source}: ${comment}`.slice(0, 1_000);
  return publishVersion(database, {
    ...{ expected, revision, identities, source, actor, comment, schema, format: CATALOGUE_FORMAT },
    catalogue: toBinary(CatalogueSchema, catalogue),
    retired: catalogue.connections.flatMap(({ id, retired }) => (retired ? [id] : [])),
    hash: catalogueHash(catalogue),
    audited: { accountId: INSTALLATION, actor, action: 'publish-catalogue', detail },
  });
}

/** Returns the SHA-256 of a catalogue in its canonical form: JSON with sorted names, without fields that say nothing. */
export function catalogueHash(catalogue: Catalogue): Uint8Array {
  const json = JSON.stringify(sorted(toJson(CatalogueSchema, catalogue, { useProtoFieldName: true })));
  return createHash('sha256').update(json).digest();
}

function sorted(json: JsonValue): JsonValue {
  if (Array.isArray(json)) return json.map(sorted);
  if (typeof json !== 'object' || json === null) return json;
  return Object.fromEntries(
    Object.entries(json)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, value]) => [name, sorted(value)]),
  );
}
