import { type Timestamp, timestampDate } from '@bufbuild/protobuf/wkt';
import { currencyDigits, formatMoney, type Money } from '#src/money.ts';
import { type Html, type HtmlValue, html } from '#src/web/html.ts';

/** Colour of a state: successful, failed, open, or refunded. */
type Tone = 'good' | 'bad' | 'open' | 'back' | 'plain';

const TONES: Readonly<Record<string, Tone>> = {
  SUCCEEDED: 'good',
  VERIFIED: 'good',
  DELIVERED: 'good',
  CLOSED: 'good',
  ON: 'good',
  IN_FORCE: 'good',
  ACCEPTED: 'good',
  STORED: 'good',
  ADDED: 'good',
  applied: 'good',
  WON: 'good',
  LOST: 'bad',
  BALANCED: 'good',
  UNBALANCED: 'bad',
  status_differs: 'bad',
  NEEDS_RESPONSE: 'bad',
  UNKNOWN: 'bad',
  UNDER_REVIEW: 'open',
  DECLINED: 'bad',
  ERROR: 'bad',
  FAILED: 'bad',
  CHARGEBACK: 'bad',
  IN_DISPUTE: 'bad',
  OPEN: 'bad',
  REMOVED: 'bad',
  REFUSED: 'bad',
  MISSING: 'bad',
  UNREACHABLE: 'bad',
  PENDING: 'open',
  READY_TO_PAY: 'open',
  CREATED: 'open',
  HALF_OPEN: 'open',
  FOLLOWING: 'open',
  WARNING: 'open',
  CHANGED: 'open',
  MOVED: 'open',
  waiting: 'open',
  REFUNDED: 'back',
  CANCELED: 'back',
  OFF: 'back',
  EXPIRED: 'back',
};

/** Renders a state as a word in its colour. */
export function badge(state: string): Html {
  return html`<span class="badge ${TONES[state] ?? 'plain'}">${state.replaceAll('_', ' ')}</span>`;
}

/** Renders the status of a dispute. One that the merchant accepted is lost. */
export function disputeBadge(status: string): Html {
  return status === 'ACCEPTED' ? html`<span class="badge bad">ACCEPTED</span>` : badge(status);
}

/** Formats an amount as "USD 3,000.00" or "JPY 1,200": with the currency code, since many currencies share a symbol. */
export function money(decimal: string | undefined, currency: string): string {
  const [whole = '', fraction] = asWritten(decimal ?? '', currency).split('.');
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ',');
  return `${currency} ${grouped}${fraction === undefined ? '' : `.${fraction}`}`;
}

/** Formats minor units as `money` does. */
export function moneyText({ minorUnits, currency }: Money): string {
  return money(formatMoney({ minorUnits, currency }), currency);
}

/** Formats minor units as a grouped decimal, where the currency is named beside it. */
export function amountText(amount: Money): string {
  return moneyText(amount).slice(amount.currency.length + 1);
}

/** Returns a decimal without the ".0" that amounts in a currency without minor units have on the wire. */
export function asWritten(decimal: string, currency: string): string {
  return currencyDigits(currency) === 0 ? decimal.replace(/\.0+$/, '') : decimal;
}

/** Renders a time in UTC, to the second. */
export function time(at: Date | Timestamp | undefined): Html {
  if (!at) return html`–`;
  const date = at instanceof Date ? at : timestampDate(at);
  const iso = date.toISOString();
  return html`<time datetime="${iso}">${iso.slice(0, 10)} ${iso.slice(11, 19)}</time>`;
}

/** Formats a duration in its largest unit, such as "3 min". */
export function duration(seconds: number): string {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 90 * 60) return `${Math.round(seconds / 60)} min`;
  if (seconds < 36 * 3600) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} days`;
}

/** Truncates a string to a number of characters. */
export function shortened(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}

/** Maximum number of characters shown of a value. */
const MAX_FACT_LENGTH = 512;

/** Renders rows of name and value, without the rows that have no value. */
export function facts(rows: readonly (readonly [name: string, value: HtmlValue])[]): Html {
  const filled = rows.filter(([, value]) => value !== undefined && value !== '' && value !== false);
  return html`<dl class="facts">${filled.map(([name, value]) => html`<div><dt>${shortened(name, MAX_FACT_LENGTH)}</dt><dd>${typeof value === 'string' ? shortened(value, MAX_FACT_LENGTH) : value}</dd></div>`)}</dl>`;
}

/** Formats an integer with grouped thousands. */
export function count(value: number): string {
  return value.toLocaleString('en-US');
}

/** Formats a share as a percentage with one decimal place, or "–" if the whole is zero. */
export function percent(part: number, whole: number): string {
  return whole === 0 ? '–' : `${((100 * part) / whole).toFixed(1)} %`;
}

/** Renders an option of a select element. @param chosen the selected value. */
export function option(value: string, name: string, chosen: string): Html {
  return html`<option value="${value}"${value === chosen ? html` selected` : undefined}>${name}</option>`;
}

/** Renders a number in a table whose rows are stacked on a phone, with the name of its column there. */
export function numberCell(column: string, text: string | Html): Html {
  return html`<td class="number"><span class="narrow">${column} </span>${text}</td>`;
}
