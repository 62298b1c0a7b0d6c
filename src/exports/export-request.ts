import { Dispute_Stage, Dispute_Status } from '#gen/payments/v1/dispute_service_pb.js';
import { Payment_Status, Transaction_Status, Transaction_Type } from '#gen/payments/v1/payment_pb.js';
import { SETTLEMENT_KINDS } from '#src/connectors/port/settlement-line.ts';
import { CURRENCIES } from '#src/money.ts';
import { type FieldError, invalidParameters } from '#src/service-error.ts';
import { DIFFERENCE_KINDS } from '#src/store/tables/settlement-differences.ts';
import { isUuid } from '#src/store/tables/stored-objects.ts';
import type { CsvFormat } from './csv.ts';
import { type Period, readPeriod } from './period.ts';
import { DIFFERENCE_STATUSES } from './settlement-columns.ts';

/**
 * The files: movements of money; all transactions of payments; payments; disputes; lines of providers' reports; what they
 * say differently.
 */
export const EXPORT_KINDS = [
  ...(['movements', 'transactions', 'payments', 'disputes', 'settlement', 'differences'] as const),
];

/** The name of a file. */
export type ExportKind = (typeof EXPORT_KINDS)[number];

/** A file that is asked for. */
export type ExportRequest = {
  readonly kind: ExportKind;
  /** undefined for every account. */
  readonly accountId: string | undefined;
  readonly period: Period;
  /** The values that columns must have. */
  readonly filters: Readonly<Record<string, string>>;
  /** Adds the payer's personal data. */
  readonly includesPayer: boolean;
  readonly format: CsvFormat;
};

const namesOf = (values: object) => {
  const names = Object.keys(values).filter((name) => /^[A-Z]/.test(name) && !name.endsWith('_UNSPECIFIED'));
  return new Set(names);
};
const MOVEMENT_TYPES = new Set([
  'PURCHASE',
  'CAPTURE',
  'REFUND',
  'UNDONE',
  'REDONE',
  'DISPUTE_WITHDRAWN',
  'DISPUTE_REINSTATED',
]);

/** The columns that a file can be filtered by, each with its values; undefined for any text. */
export const FILTERS: Readonly<
  Record<ExportKind, Readonly<Record<string, ReadonlySet<string> | undefined>>>
> = (() => {
  const currency = CURRENCIES;
  const ofPayment = {
    ...{ merchant_order_id: undefined, payment_method_type: undefined, brand: undefined },
    ...{ card_last_four: undefined, country: undefined, customer_id: undefined, connection_id: undefined },
  };
  const status = namesOf(Transaction_Status);
  return {
    movements: { currency, ...ofPayment, type: MOVEMENT_TYPES },
    transactions: { currency, ...ofPayment, type: namesOf(Transaction_Type), status },
    payments: { currency, ...ofPayment, status: namesOf(Payment_Status) },
    disputes: {
      currency,
      ...ofPayment,
      dispute_status: namesOf(Dispute_Status),
      dispute_stage: namesOf(Dispute_Stage),
    },
    settlement: {
      ...{ currency, settlement_currency: CURRENCIES, ...ofPayment, payout_reference: undefined },
      settlement_kind: new Set<string>(SETTLEMENT_KINDS),
      settlement_result: new Set(['matched', 'unmatched', 'ambiguous', 'none_expected']),
    },
    differences: {
      ...ofPayment,
      difference_kind: new Set<string>(DIFFERENCE_KINDS),
      difference_status: new Set<string>(DIFFERENCE_STATUSES),
    },
  };
})();

const BOOLEAN = new Set(['true', 'false']);
const OPTIONS: Readonly<Record<string, ReadonlySet<string> | undefined>> = {
  ...{ account_id: undefined, month: undefined, from: undefined, before: undefined, zone: undefined },
  separator: new Set(['comma', 'semicolon']),
  bom: BOOLEAN,
  raw: BOOLEAN,
  include: new Set(['payer']),
};

const MAX_LENGTH = 255;

/**
 * Reads the parameters of an export. Every parameter has at most one value.
 *
 * @throws ServiceError INVALID_PARAMETERS, which names each parameter that is unknown or wrong.
 */
export function readExportRequest(
  kind: ExportKind,
  parameters: Readonly<Record<string, unknown>>,
): ExportRequest {
  const given = readParameters(kind, parameters);
  const { account_id: accountId, month, from, before, zone, separator, bom, raw, include }: Given = given;
  return {
    kind,
    accountId: accountId?.toLowerCase(),
    period: readPeriod({ month, from, before, zone }),
    filters: Object.fromEntries(Object.entries(given).filter(([name]) => name in FILTERS[kind])),
    includesPayer: include === 'payer',
    format: {
      separator: separator === 'semicolon' ? ';' : ',',
      hasBom: bom === 'true',
      isRaw: raw === 'true',
    },
  };
}

/** Parameters by name. */
type Given = Readonly<Record<string, string | undefined>>;

/** Returns an export's parameters, without its period and account, as the audit log keeps them. */
export function describeRequest({ filters, includesPayer, format }: ExportRequest): string {
  const { separator, hasBom, isRaw } = format;
  const options = {
    ...filters,
    ...(includesPayer && { include: 'payer' }),
    ...(separator === ';' && { separator: 'semicolon' }),
    ...(hasBom && { bom: 'true' }),
    ...(isRaw && { raw: 'true' }),
  };
  return Object.entries(options)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ');
}

function readParameters(
  kind: ExportKind,
  parameters: Readonly<Record<string, unknown>>,
): Readonly<Record<string, string>> {
  const known = { ...OPTIONS, ...FILTERS[kind] };
  const faults: FieldError[] = [];
  const given: Record<string, string> = {};
  for (const [name, value] of Object.entries(parameters)) {
    const message = faultOf(name, value, known);
    if (message === undefined) given[name] = value as string;
    else faults.push({ field: name.slice(0, MAX_LENGTH), code: 'NOT_ALLOWED', message });
  }
  if (faults.length > 0) throw invalidParameters(faults);
  return given;
}

function faultOf(
  name: string,
  value: unknown,
  known: Readonly<Record<string, ReadonlySet<string> | undefined>>,
): string | undefined {
  if (name === 'to') return 'is not a parameter of an export: use before, the end, which is excluded';
  if (!Object.hasOwn(known, name)) {
    return `is not a parameter of this file, whose parameters are ${Object.keys(known).join(', ')}`;
  }
  if (typeof value !== 'string') return 'must be given once';
  if (value === '' || value.length > MAX_LENGTH) return `must have 1 to ${MAX_LENGTH} characters`;
  if (name === 'account_id' && !isUuid(value)) return 'must be a UUID';
  const values = known[name];
  if (values === undefined || values.has(value)) return undefined;
  return values === CURRENCIES ? 'must be a currency (ISO 4217)' : `must be one of ${[...values].join(', ')}`;
}
