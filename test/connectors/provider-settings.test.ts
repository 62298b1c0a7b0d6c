import { expect, it } from 'vitest';
import { StripeConfigSchema } from '#gen/payments/config/connector_settings_pb.js';
import { checkSettings } from '#src/connectors/kit/provider-settings.ts';
import { CONNECTORS } from '#src/connectors/registry.ts';
import { Secret } from '#src/secret.ts';

it('the checked settings of a connection do not contain its secrets', () => {
  const secrets = { api_key: new Secret('sk_test_hidden'), webhook_secret: new Secret('whsec_hidden') };
  const config = checkSettings(StripeConfigSchema, { account_id: 'acct_1' }, secrets);
  expect(config.accountId).toBe('acct_1');
  expect(JSON.stringify(config)).not.toContain('hidden');
});

it.each(CONNECTORS)('a secret among the settings of $name is rejected without quoting it', ({ connect }) => {
  const settings = { api_key: 'hidden-value', access_token: 'hidden-value', client_secret: 'hidden-value' };
  const open = () => connect(settings, { providerId: 'PROVIDER', secrets: {} });
  expect(open).toThrow(/the connector has no setting (api_key|access_token|client_secret)/);
  expect(open).not.toThrow(/hidden-value/);
});
