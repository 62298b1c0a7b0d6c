import { randomBytes } from 'node:crypto';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  CatalogueSchema,
  type FailoverSchema,
  type PaymentMethodTypeSchema,
} from '#gen/payments/v1/catalogue_pb.js';
import { Payment_Workflow, Transaction_Category } from '#gen/payments/v1/payment_pb.js';
import { systemClock } from '#src/clock.ts';
import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import type { CheckerDeps } from '#src/payments/check/checker.ts';
import type { PaymentDeps } from '#src/payments/create/create-payment.ts';
import type { StoredResponses } from '#src/payments/keys/stored-response.ts';
import { createBinTable } from '#src/payments/method/bin-table.ts';
import type { OperationDeps } from '#src/payments/operate/claim-operation.ts';
import { createRouter } from '#src/routing/router.ts';
import type { Database } from '#src/store/engine/database.ts';
import { cardVault } from '#src/vault/card-vault.ts';

/** The dependencies of payments, operations and checks. */
export type CoreDeps = PaymentDeps & OperationDeps & CheckerDeps;

type CoreOptions = {
  readonly database: Database;
  readonly responses: StoredResponses;
  /** The connections, in the order in which the only route names them. */
  readonly connections: ReadonlyMap<string, ProviderConnection>;
  /** When the route tries its next connection. */
  readonly failover?: MessageInitShape<typeof FailoverSchema>;
  /** Returns true if a connection's circuit lets payments pass; all do by default. */
  readonly isAvailable?: (connectionId: string) => boolean;
};

const KEY = randomBytes(32);
const VAULT = cardVault(new Map([['test-1', KEY]]));
const BINS = createBinTable([]);

const TYPES: MessageInitShape<typeof PaymentMethodTypeSchema>[] = [
  { type: 'CARD', category: Transaction_Category.CARD, workflows: [Payment_Workflow.DIRECT] },
  { type: 'WALLET', category: Transaction_Category.WALLET, workflows: [Payment_Workflow.REDIRECT] },
  { type: 'WALLET_B', category: Transaction_Category.WALLET, workflows: [Payment_Workflow.REDIRECT] },
  {
    ...{ type: 'WALLET_C_ENROLLMENT', category: Transaction_Category.WALLET },
    workflows: [Payment_Workflow.DIRECT],
  },
  { type: 'PIX', category: Transaction_Category.BANK_TRANSFER, workflows: [Payment_Workflow.REDIRECT] },
  { type: 'OXXO', category: Transaction_Category.TICKET, workflows: [Payment_Workflow.REDIRECT] },
];

/**
 * The core of the service without its doors: a real database, vault and router, whose only route leads to the given
 * connections. Every sent request may be closed at once, a caller waits a second for one with the same key, and a failed
 * check rejects. Tests replace the rest by spreading; this file has no hooks, so programs can use it too.
 */
export function coreDeps(options: CoreOptions): CoreDeps {
  const { database, responses, connections, failover, isAvailable = () => true } = options;
  const ids = [...connections.keys()];
  const catalogue = create(CatalogueSchema, {
    paymentMethodTypes: TYPES,
    connections: ids.map((id) => ({ id, name: id, providerId: id.toUpperCase() })),
    routes: [{ id: 1, targets: ids.map((connection) => ({ connection })), ...(failover && { failover }) }],
  });
  const signals = { isAvailable, approvalRate: () => 0 };
  const live = {
    types: new Map(catalogue.paymentMethodTypes.map((type) => [type.type, type])),
    router: createRouter(catalogue, signals),
    ...{ version: 0, signals, bins: BINS, connections, learn: () => {} },
  };
  return {
    ...{ database, responses, vault: VAULT, now: systemClock() },
    ...{ fingerprintKey: KEY, requestHashKey: KEY, payerEmailKey: KEY, payerDocumentKey: KEY },
    catalogue: () => live,
    connections: () => connections,
    publicUrl: () => 'https://payments.example',
    schedule: { leaseMarginMs: 60_000, firstCheckMs: 1, closingMarginMs: -60_000 },
    patience: { waitMs: 1_000, retryAfterS: 1, pause: (ms) => new Promise((done) => setTimeout(done, ms)) },
    observer: {
      providerCall: (_connection, _transaction, call) => call(),
      failedOver: () => {},
      alarmed: () => {},
      finishFailed: () => {},
      finished: () => {},
      operated: () => {},
      replayed: () => {},
      refused: () => {},
    },
    isLeftAlone: () => false,
    settled: () => {},
    checked: { learned: () => {}, failed: (error) => Promise.reject(error) },
  };
}
