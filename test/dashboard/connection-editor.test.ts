import { create, type JsonValue } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { CatalogueSchema, ConnectionConfigSchema } from '#gen/payments/v1/catalogue_pb.js';
import type { ConnectorField } from '#gen/payments/v1/configuration_service_pb.js';
import { connectorForm } from '#src/catalogue/connector-form.ts';
import { CONNECTORS } from '#src/connectors/registry.ts';
import { connectionEditor } from '#src/dashboard/connection-editor.ts';

const forms = CONNECTORS.map(connectorForm);

/** A setting of each kind. */
const EXAMPLES: Readonly<Record<string, JsonValue>> = {
  ...{ TEXT: 'one', NUMBER: 7, FLAG: false, LIST: ['a', 'b'], MAP: { ONE: 'http://a:1', TWO: 'b' } },
};

const settingsOf = (fields: readonly ConnectorField[]) =>
  Object.fromEntries(
    fields.flatMap(({ name, kind }) => (kind === 'SECRET' ? [] : [[name, EXAMPLES[kind] as JsonValue]])),
  );

it.each(forms)('a connection of $name stays the same in a form that is not changed', ({ name, fields }) => {
  const connection = create(ConnectionConfigSchema, {
    ...{ id: 'one', name: 'One', providerId: 'ONE', connector: name, retired: true, maxInFlight: 3 },
    settings: { ...settingsOf(fields), of_a_later_release: { a: 1 } },
    secretsFromEnvironment: { api_key: 'KEY' },
    circuitBreaker: { off: true, windowS: 4 },
    authorizationValidDays: 5,
    redirectValidMinutes: 6,
    accountIds: ['a', 'b'],
  });
  const catalogue = create(CatalogueSchema, { connections: [connection] });
  const editor = connectionEditor({ forms, connector: '', listed: [] });
  const filled = editor.stored(catalogue, 'one');
  const changed = editor.change((field) => (field === 'editing' ? 'one' : filled(field)), catalogue);
  expect(changed).toEqual({ case: 'putConnection', value: connection });
});
