import { isUuid } from '#src/store/tables/stored-objects.ts';
import { type Html, html, NOTHING } from '#src/web/html.ts';
import { DASHBOARD } from './frame.ts';
import type { Search } from './search-form.ts';

/** Fields of the search, and the export's names for them. */
const COLUMNS = {
  status: 'status',
  method: 'payment_method_type',
  account: 'account_id',
  connection: 'connection_id',
  brand: 'brand',
  country: 'country',
  currency: 'currency',
  from: 'from',
  zone: 'zone',
} as const;
const TEXTS: Readonly<Record<string, string>> = {
  order: 'merchant_order_id',
  last_four: 'card_last_four',
  customer: 'customer_id',
};
/** Fields of the search for which files have no filter. */
const NOT_EXPORTED = [
  ...(['sub_status', 'code', 'category', 'least', 'most', 'unknown', 'disputed'] as const),
  ...(['outcome', 'refunded', 'succeeded_from', 'succeeded_to'] as const),
];

/** Links to the export of what is searched for; nothing for a search that no file can have. */
export function exportLink(search: Search): Html {
  const { text, by, to } = search;
  const column = TEXTS[by];
  const isExportable = text === '' || (column !== undefined && (by !== 'customer' || isUuid(text)));
  if (!isExportable || NOT_EXPORTED.some((field) => search[field] !== '')) return NOTHING;
  const query = new URLSearchParams({
    ...Object.fromEntries(
      Object.entries(COLUMNS).flatMap(([field, name]) => {
        const value = search[field as keyof typeof COLUMNS];
        return value === '' ? [] : [[name, value]];
      }),
    ),
    ...(text !== '' && column && { [column]: text }),
    ...(/^\d{4}-\d\d-\d\dT\d\d:\d\d$/.test(to) && { before: minuteAfter(to) }),
  });
  return html`<a class="button quiet" href="${DASHBOARD}/export?${String(query)}">Export these</a>`;
}

/** Returns the end of a minute of a form, which a search includes. */
function minuteAfter(text: string): string {
  const end = new Date(Date.parse(`${text}Z`) + 60_000);
  return Number.isNaN(end.getTime()) ? text : end.toISOString().slice(0, 16);
}
