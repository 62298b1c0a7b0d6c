import type { AgreedFee as AgreedFeeConfig } from '#gen/payments/v1/catalogue_pb.js';
import { type AgreedFee, readAgreedFee } from '#src/connectors/port/agreed-fee.ts';
import type { SettlementSource } from '#src/connectors/port/settlement-source.ts';
import { CONNECTORS } from '#src/connectors/registry.ts';
import type { SettledConnection } from './import-settlement.ts';

/** An account at a provider, with the connections that point to it. */
export type SettledAccount = {
  readonly identity: string;
  readonly connectionIds: readonly string[];
  /** Time after a success, at the most, until the provider settles it. */
  readonly windowMs: number;
  /** The same for kinds of reports that settle sooner, by their lines' `report`. */
  readonly reportWindowsMs?: Readonly<Record<string, number>>;
  /** The fees that are agreed with the provider, by connection; those of a connection without any are not compared. */
  readonly agreedFees: ReadonlyMap<string, readonly AgreedFee[]>;
};

/** The part of an opened catalogue that settlement reads. */
export type SettledCatalogue = {
  readonly catalogue: {
    readonly connections: readonly {
      readonly id: string;
      readonly connector: string;
      readonly agreedFees: readonly AgreedFeeConfig[];
    }[];
  };
  readonly connections: ReadonlyMap<
    string,
    {
      readonly identity: string;
      readonly accountCurrency?: string | undefined;
      readonly settlementSource?: SettlementSource | undefined;
    }
  >;
};

/**
 * Finds what the reports of a connection are imported and matched with.
 *
 * @returns 'no such connection', or 'no reports' if its provider's reports cannot be imported.
 */
export function settledConnection(
  opened: SettledCatalogue,
  id: string,
):
  | {
      readonly settled: SettledConnection;
      readonly account: SettledAccount;
      /** undefined: its reports are files. */
      readonly source: SettlementSource | undefined;
    }
  | 'no such connection'
  | 'no reports' {
  const definition = opened.catalogue.connections.find((one) => one.id === id);
  const connection = opened.connections.get(id);
  if (!definition || !connection) return 'no such connection';
  const reports = reportsOf(definition);
  if (!reports) return 'no reports';
  const { identity, accountCurrency: currency, settlementSource: source } = connection;
  const sameAccount = [...opened.connections].filter(([, other]) => other.identity === identity);
  const connectionIds = sameAccount.map(([other]) => other);
  return {
    ...{ settled: { id, identity, read: reports.read, currency }, source },
    account: {
      ...{ identity, connectionIds, windowMs: reports.windowHours * HOUR_MS },
      reportWindowsMs: Object.fromEntries(
        Object.entries(reports.reportHours ?? {}).map(([report, hours]) => [report, hours * HOUR_MS]),
      ),
      agreedFees: agreedFeesOf(opened, connectionIds),
    },
  };
}

function agreedFeesOf(
  { catalogue }: SettledCatalogue,
  ids: readonly string[],
): ReadonlyMap<string, readonly AgreedFee[]> {
  const own = catalogue.connections.filter(({ id }) => ids.includes(id));
  const read = own.map(({ id, agreedFees }) => {
    const fees = agreedFees.map(readAgreedFee);
    return [id, fees.filter((fee): fee is AgreedFee => 'currency' in fee)] as const;
  });
  return new Map(read);
}

/** Returns the ids of the connections whose reports can be imported. */
export function importableConnections(opened: SettledCatalogue): string[] {
  return opened.catalogue.connections
    .filter((one) => opened.connections.has(one.id) && reportsOf(one))
    .map(({ id }) => id);
}

/** Returns how the reports of a connector are read; undefined if they cannot be imported. */
function reportsOf({ connector }: SettledCatalogue['catalogue']['connections'][number]) {
  return CONNECTORS.find(({ name }) => name === connector)?.settlement;
}

/** Finds an account at a provider by its identity; undefined if no connection points to it. */
export function settledAccount(opened: SettledCatalogue, identity: string): SettledAccount | undefined {
  const [id] = [...opened.connections].find(([, connection]) => connection.identity === identity) ?? [];
  const found = id === undefined ? 'no such connection' : settledConnection(opened, id);
  return typeof found === 'object' ? found.account : undefined;
}

const HOUR_MS = 3_600_000;
