import type { Catalogue } from '#gen/payments/v1/catalogue_pb.js';
import type { Database } from '#src/store/engine/database.ts';
import { readHead, readVersion } from '#src/store/tables/catalogue-versions.ts';
import type { Credentials, ReadCredentials } from './credentials.ts';
import {
  CATALOGUE_FORMAT,
  catalogueHash,
  type PublishedCatalogue,
  publishCatalogue,
  readPublished,
} from './publish-catalogue.ts';

/**
 * Publishes the first version of the catalogue, or the next one while the version in force is a seed and differs, so that
 * a new release's methods arrive. Several replicas may do so at the same time.
 *
 * @param seed the sandbox's catalogue; undefined if there is no sandbox, whose first version is empty and stays.
 * @param actor for the audit log.
 */
export async function seedCatalogue(
  database: Database,
  seed: Catalogue | undefined,
  first: Catalogue,
  actor: string,
): Promise<void> {
  const head = await readHead(database);
  const publish = (catalogue: Catalogue, expected: number) =>
    publishCatalogue(database, { catalogue, expected, source: 'seed', actor, comment: '' });
  if (!head) {
    await publish(seed ?? first, 0);
    return;
  }
  const current = await readVersion(database, head.version);
  if (!seed || current?.source !== 'seed' || current.format > CATALOGUE_FORMAT) return;
  if (Buffer.compare(current.hash, catalogueHash(seed)) === 0) return;
  await publish(seed, head.version);
}

/** A catalogue from the database, with its connections' credentials. */
export type StoredCatalogue = PublishedCatalogue & {
  readonly credentials: Credentials;
  /** The head's revision before they were read. */
  readonly revision: bigint;
};

/** Reads the catalogue in force from the database; undefined if none was ever published. @throws UnknownFormatError. */
export async function readCatalogueInForce(
  database: Database,
  readCredentials: ReadCredentials,
): Promise<StoredCatalogue | undefined> {
  const head = await readHead(database);
  const published = head && (await readPublished(database, head.version));
  return published && { ...published, credentials: await readCredentials(), revision: head.revision };
}
