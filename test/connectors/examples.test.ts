import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openCatalogue } from '#src/catalogue/open-catalogue.ts';
import { readCatalogue } from '#src/catalogue/read-catalogue.ts';
import { CONNECTORS } from '#src/connectors/registry.ts';
import { createApprovalRates } from '#src/routing/approval-rates.ts';
import { FAKE_SECRETS } from '../support/fake-providers.ts';

const EXAMPLES = join(import.meta.dirname, '../../config/examples');
const ENVIRONMENT: Readonly<Record<string, string>> = FAKE_SECRETS;

it.each([
  ['adyen', 'adyen-main', { methods: ['CARD', 'PAYER_PAGE'], installments: false }, undefined],
  [
    'mercado-pago',
    'mercado-pago-br',
    { methods: ['CARD', 'PAYER_PAGE'], localMethods: { PIX: {}, BOLETO: {} }, refunds: 'several' },
    expect.any(Function),
  ],
  ['paypal', 'paypal-main', { methods: ['PAYER_PAGE'], refunds: 'several' }, expect.any(Function)],
  [
    'stripe',
    'stripe-main',
    { methods: ['CARD'], challenge: true, installments: false },
    expect.any(Function),
  ],
])('the example catalogue of %s opens with secrets from the environment', async (name, id, can, lookUp) => {
  const catalogue = openCatalogue(
    { catalogue: readCatalogue(join(EXAMPLES, `${name}.yaml`)), version: 0 },
    {
      connectors: CONNECTORS,
      environment: (variable) => ENVIRONMENT[variable],
      variables: {},
      maxInFlight: 1_000,
      identityKey: new Uint8Array(32),
      rates: createApprovalRates(),
      observer: {
        conditionFailed: () => {},
        circuitChanged: () => {},
        probeFailed: () => {},
        connectionRetired: () => {},
      },
    },
  );
  const connection = catalogue.connections.get(id);
  expect(connection?.capabilities).toMatchObject(can);
  expect([connection?.lookUp, connection?.readNotification]).toEqual([lookUp, expect.any(Function)]);
  await catalogue.close();
});
