import { create } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { UpdateCatalogueRequestSchema } from '#gen/payments/v1/configuration_service_pb.js';
import { parseCatalogue } from '#src/catalogue/read-catalogue.ts';
import { seedCatalogue } from '#src/catalogue/seed-catalogue.ts';
import { updateCatalogue } from '#src/catalogue/update-catalogue.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';
import { SMALL } from '../support/small-catalogue.ts';

onOwnDatabase({ empties: 'catalogue_version, catalogue_head' });

const PUBLISHER = {
  source: 'api',
  actor: 'Alice',
  ...{ maySetSecrets: true, maySetAddresses: true },
} as const;

/** Publishes a change while secrets change, as often as told, after the changed catalogue was opened. */
async function publishWhileSecretsChange(times: number): Promise<{ opened: number; version: number }> {
  const catalogue = parseCatalogue(SMALL, 'small.yaml');
  await seedCatalogue(database, catalogue, catalogue, 'a test');
  let opened = 0;
  const deps = {
    ...{ database, fromFile: undefined, connectors: [], connectionHosts: [], sandbox: true },
    tryOpen: async () => {
      opened += 1;
      if (opened <= times) await tables.query('UPDATE catalogue_head SET revision = revision + 1');
      return { connections: new Map() };
    },
  };
  const changed = { ...catalogue, bins: [] };
  const request = create(UpdateCatalogueRequestSchema, {
    change: { case: 'catalogue', value: changed },
    expectedVersion: 1,
  });
  const { version } = await updateCatalogue(deps, request, PUBLISHER);
  return { opened, version };
}

const inForce = async () => (await tables.query('SELECT version FROM catalogue_head'))[0]?.version;

it('a catalogue is opened again if a secret changed after it was opened', async () => {
  expect(await publishWhileSecretsChange(2)).toEqual({ opened: 3, version: 2 });
});

it('a catalogue is not published while secrets keep changing', async () => {
  await expect(publishWhileSecretsChange(9)).rejects.toMatchObject({ reason: 'VERSION_CHANGED' });
  expect(await inForce()).toBe(1);
});
