import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openCatalogue } from '#src/catalogue/open-catalogue.ts';
import { readCatalogue } from '#src/catalogue/read-catalogue.ts';
import { CONNECTORS } from '#src/connectors/registry.ts';
import { createApprovalRates } from '#src/routing/approval-rates.ts';

const EXAMPLE = join(import.meta.dirname, '../../../config/examples/mercado-pago.yaml');
const ENVIRONMENT: Record<string, string> = {
  MERCADO_PAGO_ACCESS_TOKEN: 'APP_USR-example',
  MERCADO_PAGO_WEBHOOK_SECRET: 'the-example-secret',
};

it("opens Mercado Pago's example catalogue with secrets from the environment", async () => {
  const catalogue = openCatalogue(readCatalogue(EXAMPLE), {
    connectors: CONNECTORS,
    environment: (name) => ENVIRONMENT[name],
    variables: {},
    identityKey: new Uint8Array(32),
    rates: createApprovalRates(),
    observer: { conditionFailed: () => {}, circuitChanged: () => {}, connectionRetired: () => {} },
  });
  const connection = catalogue.connections.get('mercado-pago-ar');
  expect(connection?.capabilities).toMatchObject({ methods: ['wallet_redirect'], refunds: 'several' });
  expect(connection?.readNotification).toBeDefined();
  await catalogue.close();
});
