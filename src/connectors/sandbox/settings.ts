import type { JsonObject } from '@bufbuild/protobuf';
import { SandboxConfigSchema } from '#gen/payments/config/connector_settings_pb.js';
import type { Secret } from '#src/secret.ts';
import {
  baseUrl,
  checkSettings,
  currentSecrets,
  requiredSecret,
  type Secrets,
} from '../kit/provider-settings.ts';
import { type MethodNames, methodNames } from './local-methods.ts';

/** Names of the secrets that verify notifications: a second one while it replaces the first. */
export const NOTIFICATION_SECRETS = ['notification_secret', 'previous_notification_secret'];

/** Settings of a connection to the sandbox provider. */
export type SandboxSettings = {
  /** Scheme, host and port. */
  readonly origin: string;
  /** Prefix of the provider's API paths: "" or "/sandbox". */
  readonly basePath: string;
  /** Deadline from the call to the response's last byte. */
  readonly timeoutMs: number;
  readonly acquirer: 'ONE' | 'TWO';
  /** The account at the provider; undefined for the provider's default. */
  readonly accountId: string | undefined;
  /** The local methods, by payment_method.type. */
  readonly methods: MethodNames;
  readonly apiKey: Secret;
  /** Secrets, each of which may verify a notification. Empty: no notifications. */
  readonly notificationSecrets: readonly Secret[];
};

/** The form of the settings: their message, and the values of absent ones. */
export const FORM = {
  schema: SandboxConfigSchema,
  defaults: {
    timeout_ms: 10_000,
    acquirer: 'ONE',
  },
} as const;

/**
 * Reads a connection's settings and secrets, which SandboxConfig describes.
 *
 * @throws Error that names the invalid setting, without its value.
 */
export function readSettings(settings: JsonObject, secrets: Secrets): SandboxSettings {
  const { defaults } = FORM;
  const config = checkSettings(FORM.schema, settings, secrets);
  return {
    ...baseUrl(config.baseUrl),
    timeoutMs: config.timeoutMs ?? defaults.timeout_ms,
    acquirer: config.acquirer === 'TWO' ? 'TWO' : defaults.acquirer,
    accountId: config.accountId,
    methods: methodNames(config.methods),
    apiKey: requiredSecret(secrets, 'api_key'),
    notificationSecrets: currentSecrets(secrets, NOTIFICATION_SECRETS),
  };
}
