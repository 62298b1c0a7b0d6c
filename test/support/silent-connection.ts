import { CARDS_ONLY } from '#src/connectors/port/capabilities.ts';
import type { ProviderConnection } from '#src/connectors/port/connector.ts';

/** A connection for cards that fails each payment and offers nothing else, with the given differences. */
export function silentConnection(over: Partial<ProviderConnection> = {}): ProviderConnection {
  return {
    identity: 'scripted',
    environment: 'TEST',
    capabilities: CARDS_ONLY,
    capture: undefined,
    cancel: undefined,
    refund: undefined,
    complete: undefined,
    readNotification: undefined,
    pay: () => Promise.reject(new Error('nothing is sent')),
    lookUp: undefined,
    probe: undefined,
    readAccount: async () => ({ result: 'ACCEPTED', account: undefined, environment: 'TEST' }),
    deadlineMs: 1_000,
    close: async () => {},
    ...over,
  };
}
