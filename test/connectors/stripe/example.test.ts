import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openCatalogue } from '#src/catalogue/open-catalogue.ts';
import { readCatalogue } from '#src/catalogue/read-catalogue.ts';
import { CONNECTORS } from '#src/connectors/registry.ts';
import { createApprovalRates } from '#src/routing/approval-rates.ts';

const EXAMPLE = join(import.meta.dirname, '../../../config/examples/stripe.yaml');
const ENVIRONMENT: Record<string, string> = {
  STRIPE_API_KEY: 'sk_test_example',
  STRIPE_WEBHOOK_SECRET: 'whsec_example',
};

it("opens Stripe's example catalogue with secrets from the environment", async () => {
  const catalogue = openCatalogue(readCatalogue(EXAMPLE), {
    connectors: CONNECTORS,
    environment: (name) => ENVIRONMENT[name],
    variables: {},
    identityKey: new Uint8Array(32),
    rates: createApprovalRates(),
    observer: { conditionFailed: () => {}, circuitChanged: () => {}, connectionRetired: () => {} },
  });
  const connection = catalogue.connections.get('stripe-main');
  expect(connection?.capabilities).toMatchObject({ methods: ['card'], challenge: true, installments: false });
  expect(connection?.readNotification).toBeDefined();
  await catalogue.close();
});
