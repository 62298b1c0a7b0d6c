import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openCatalogue } from '#src/catalogue/open-catalogue.ts';
import { readCatalogue } from '#src/catalogue/read-catalogue.ts';
import { CONNECTORS } from '#src/connectors/registry.ts';
import { createApprovalRates } from '#src/routing/approval-rates.ts';
import { FAKE_API_KEY } from './fake-adyen.ts';
import { FAKE_HMAC_KEY } from './fake-notifications.ts';

const EXAMPLE = join(import.meta.dirname, '../../../config/examples/adyen.yaml');
const ENVIRONMENT: Record<string, string> = { ADYEN_API_KEY: FAKE_API_KEY, ADYEN_HMAC_KEY: FAKE_HMAC_KEY };

it("opens Adyen's example catalogue with secrets from the environment", async () => {
  const catalogue = openCatalogue(readCatalogue(EXAMPLE), {
    connectors: CONNECTORS,
    environment: (name) => ENVIRONMENT[name],
    variables: {},
    identityKey: new Uint8Array(32),
    rates: createApprovalRates(),
    observer: { conditionFailed: () => {}, circuitChanged: () => {}, connectionRetired: () => {} },
  });
  const connection = catalogue.connections.get('adyen-main');
  expect(connection?.capabilities).toMatchObject({
    methods: ['card', 'wallet_redirect'],
    installments: false,
  });
  expect([connection?.lookUp, connection?.readNotification]).toEqual([undefined, expect.any(Function)]);
  await catalogue.close();
});
