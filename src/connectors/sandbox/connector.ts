import { randomUUID } from 'node:crypto';
import type { JsonObject } from '@bufbuild/protobuf';
import type { PaymentAttempt } from '#src/connectors/attempt.ts';
import { CARDS_ONLY } from '#src/connectors/capabilities.ts';
import type {
  ConnectContext,
  Connector,
  LookUp,
  Outcome,
  ProviderConnection,
} from '#src/connectors/connector.ts';
import { createHttpClient } from '#src/connectors/http-client.ts';
import { type AskedAttempt, fromLookUp, fromProvider, isUnheardOf } from './from-provider.ts';
import { readSettings } from './settings.ts';
import { lookUpRequest, toProvider } from './to-provider.ts';

/** Speaks HTTP to the simulated provider. Its settings: see settings.ts. */
export const sandboxConnector: Connector = { name: 'sandbox', connect };

/** With this card number the connector goes to an address where nothing listens, and really tries to connect. */
export const CONNECTION_REFUSED_CARD = '4000000000005001';

const REFUSING_ORIGIN = 'http://127.0.0.1:1';
const MAX_RESPONSE_BYTES = 256 * 1024;
const MAX_CONNECTIONS = 64;

function connect(settings: JsonObject, context: ConnectContext): ProviderConnection {
  const sandbox = readSettings(settings, context.secrets);
  const limits = {
    timeoutMs: sandbox.timeoutMs,
    maxResponseBytes: MAX_RESPONSE_BYTES,
    maxConnections: MAX_CONNECTIONS,
  };
  const provider = createHttpClient({ origin: sandbox.origin, ...limits });
  const refusing = createHttpClient({ origin: REFUSING_ORIGIN, ...limits });

  async function pay(attempt: PaymentAttempt): Promise<Outcome> {
    // The provider's JSON numbers cannot tell such an amount exactly.
    if (attempt.money.minorUnits > BigInt(Number.MAX_SAFE_INTEGER)) {
      return {
        kind: 'not_sent',
        detail: 'the amount is above what the provider takes',
        because: 'turned_away',
      };
    }
    const client = isConnectionRefusedCard(attempt) ? refusing : provider;
    const result = await client.request(toProvider(attempt, sandbox));
    return fromProvider(result, attempt, context.providerId);
  }

  async function lookUp(query: LookUp): Promise<Outcome> {
    const result = await provider.request(lookUpRequest(query, sandbox));
    return fromLookUp(result, { ...query, method: methodOf(query) }, context.providerId);
  }

  /** Looks up what nobody ever sent. */
  async function probe(): Promise<boolean> {
    const query = { transactionId: randomUUID(), close: false };
    return isUnheardOf(await provider.request(lookUpRequest(query, sandbox)));
  }

  async function close(): Promise<void> {
    await Promise.all([provider.close(), refusing.close()]);
  }

  const { origin, basePath, acquirer, accountId, apiKey } = sandbox;
  const identity = [origin + basePath, acquirer, accountId ?? ''].join(' ');
  const accountNamedBy = accountId === undefined ? apiKey : undefined;
  return {
    identity,
    accountNamedBy,
    capabilities: {
      ...CARDS_ONLY,
      methods: ['card', 'wallet_redirect', 'wallet_enrollment'],
      authorization: true,
      installments: true,
    },
    deadlineMs: sandbox.timeoutMs,
    pay,
    capture: undefined,
    cancel: undefined,
    refund: undefined,
    complete: undefined,
    lookUp,
    readNotification: undefined,
    probe,
    close,
  };
}

function methodOf({ of }: LookUp): AskedAttempt['method'] {
  switch (of.kind) {
    case 'card':
      return { kind: of.kind, capture: of.capture };
    case 'wallet_redirect':
    case 'wallet_enrollment':
      return { kind: of.kind };
    default:
      throw new Error(`the connector sent no ${of.kind}`);
  }
}

function isConnectionRefusedCard(attempt: PaymentAttempt): boolean {
  return attempt.method.kind === 'card' && attempt.method.card.number.reveal() === CONNECTION_REFUSED_CARD;
}
