import type { JsonObject } from '@bufbuild/protobuf';
import { afterEach, beforeEach } from 'vitest';
import { redactOutcomes } from '#src/connectors/guards/redact-outcomes.ts';
import type { PaymentAttempt } from '#src/connectors/port/attempt.ts';
import type { Connector, LookUp, Operation, ProviderConnection } from '#src/connectors/port/connector.ts';
import type { Secret } from '#src/secret.ts';
import { lookUpOf, lookUpOfOperation } from './attempts.ts';

/** A separate fake of a provider, with connections to it. */
export type UnderTest<Fake> = {
  readonly fake: Fake;
  readonly connection: ProviderConnection;
  /** Another connection to the same fake, with a deadline that a test can wait for. */
  readonly impatient: ProviderConnection;
  close(): Promise<void>;
};

/** A connection, opened as the service opens it. */
export function connect(
  connector: Connector,
  settings: JsonObject,
  secrets: Readonly<Record<string, Secret>>,
): ProviderConnection {
  const providerId = connector.name.toUpperCase().replaceAll('-', '_');
  return redactOutcomes(connector.connect({ timeout_ms: 20_000, ...settings }, { providerId, secrets }));
}

/** Opens connections to a fake. */
export function underTest<Fake extends { readonly url: string; close(): unknown }>(
  fake: Fake,
  open: (settings: JsonObject) => ProviderConnection,
): UnderTest<Fake> {
  const connection = open({ base_url: fake.url });
  const impatient = open({ base_url: fake.url, timeout_ms: 2_000 });
  return {
    fake,
    connection,
    impatient,
    close: async () => {
      await connection.close();
      await impatient.close();
      await fake.close();
    },
  };
}

/** Opens a new provider under test for each test of a file. The returned object belongs to the current test. */
export function openedForEach<Under extends { close(): Promise<void> }>(open: () => Promise<Under>): Under {
  const under = {} as Under;
  beforeEach(async () => {
    Object.assign(under, await open());
  });
  afterEach(() => under.close());
  return under;
}

type Asked = Pick<UnderTest<unknown>, 'connection'>;

/** Looks up an attempt. @param reference the reference in its outcome. */
export function lookUp(
  { connection }: Asked,
  attempt: PaymentAttempt,
  reference: string | undefined,
  over: Partial<LookUp> = {},
) {
  return connection.lookUp?.(lookUpOf(attempt, { reference, ...over }));
}

/** Looks up an operation. @param claimed references of the payment's other transactions. */
export function lookUpOperation(
  { connection }: Asked,
  kind: 'capture' | 'cancel' | 'refund',
  operation: Operation,
  over: Partial<LookUp> = {},
  claimed: readonly string[] = [],
) {
  return connection.lookUp?.(lookUpOfOperation(kind, operation, over, claimed));
}
