import type { AgreedFee as AgreedFeeConfig } from '#gen/payments/v1/catalogue_pb.js';
import { CURRENCIES, currencyDigits, largestAmount, parseMoney } from '#src/money.ts';

/** A fee that is agreed with a provider, for payments and captures that it settles in a currency. */
export type AgreedFee = {
  readonly currency: string;
  /** undefined for every payment method type without a fee of its own. */
  readonly methodType: string | undefined;
  /** In millionths of a percent. */
  readonly percent: bigint;
  /** Minor units. */
  readonly fixed: bigint;
  /** Minor units; undefined for one minor unit for each part from which a report adds up the fee. */
  readonly tolerance: bigint | undefined;
};

/** A fault of a field of an agreed fee in a catalogue. */
export type AgreedFeeFault = {
  readonly name: 'currency' | 'percent' | 'fixed' | 'tolerance';
  readonly message: string;
};

/** The fields of an agreed fee in a catalogue. */
type Fields = Pick<AgreedFeeConfig, 'currency' | 'paymentMethodType' | 'percent' | 'fixed' | 'tolerance'>;

const PERCENT = /^(\d{1,3})(?:\.(\d{1,6}))?$/;
const MILLION = 1_000_000n;

/** Reads an agreed fee of a catalogue. @returns its faults if it has any. */
export function readAgreedFee(fields: Fields): AgreedFee | readonly AgreedFeeFault[] {
  const { currency, paymentMethodType, percent, fixed, tolerance } = fields;
  if (!CURRENCIES.has(currency)) return [{ name: 'currency', message: 'must be an ISO 4217 code' }];
  if (percent === '' && fixed === '') {
    return [{ name: 'percent', message: 'must be present, or fixed, or both; "0" if no fee is agreed' }];
  }
  const millionths = percentIn(percent);
  const [fixedUnits, toleranceUnits] = [minorUnitsIn(fixed, currency), minorUnitsIn(tolerance, currency)];
  const money = `must be an amount in ${currency}, not negative, with at most ${currencyDigits(currency)} decimal places`;
  if (millionths === undefined || fixedUnits === undefined || toleranceUnits === undefined) {
    return [
      ...(millionths === undefined ? [{ name: 'percent', message: PERCENT_RULE } as const] : []),
      ...(fixedUnits === undefined ? [{ name: 'fixed', message: money } as const] : []),
      ...(toleranceUnits === undefined ? [{ name: 'tolerance', message: money } as const] : []),
    ];
  }
  const methodType = paymentMethodType === '' ? undefined : paymentMethodType;
  return {
    currency,
    methodType,
    percent: millionths,
    fixed: fixedUnits,
    tolerance: tolerance === '' ? undefined : toleranceUnits,
  };
}

const PERCENT_RULE = 'must be a decimal from 0 to 100, with a point and at most 6 decimal places';

function percentIn(text: string): bigint | undefined {
  if (text === '') return 0n;
  const [, whole = '', fraction = ''] = PERCENT.exec(text) ?? [];
  if (whole === '') return undefined;
  const millionths = BigInt(whole) * MILLION + BigInt(fraction.padEnd(6, '0'));
  return millionths > 100n * MILLION ? undefined : millionths;
}

function minorUnitsIn(text: string, currency: string): bigint | undefined {
  if (text === '') return 0n;
  const minorUnits = parseMoney(text, currency)?.minorUnits;
  const largest = largestAmount(currency)?.minorUnits ?? 0n;
  if (minorUnits === undefined || minorUnits > largest || text.startsWith('-')) return undefined;
  return minorUnits;
}

/** Returns the fee on a gross amount, both in minor units: the percentage is rounded half up. */
export function feeOn({ percent, fixed }: AgreedFee, gross: bigint): bigint {
  const hundred = 100n * MILLION;
  return (gross * percent + hundred / 2n) / hundred + fixed;
}

/** Describes an agreed fee of a catalogue: `USD PIX: 2.9% + 0.30, within 0.02`. */
export function agreedFeeInWords({ currency, paymentMethodType, percent, fixed, tolerance }: Fields): string {
  const parts = [percent === '' ? '' : `${percent}%`, fixed].filter((part) => part !== '');
  const within = tolerance === '' ? '' : `, within ${tolerance}`;
  const type = paymentMethodType === '' ? '' : ` ${paymentMethodType}`;
  return `${currency}${type}: ${parts.join(' + ')}${within}`;
}
