import { create } from '@bufbuild/protobuf';
import { type Timestamp, TimestampSchema } from '@bufbuild/protobuf/wkt';
import { type Payment, Payment_Status } from '#gen/payments/v1/payment_pb.js';
import type { ListPaymentsRequest } from '#gen/payments/v1/payment_service_pb.js';
import { invalidField } from '#src/service-error.ts';
import type { Database } from '#src/store/engine/database.ts';
import {
  listPayments as listStored,
  MAX_LISTED,
  type PaymentFilter,
} from '#src/store/tables/list-payments.ts';
import { timestampText } from '#src/wire/wire-json-encode.ts';
import { parseTimestamp } from '#src/wire/wire-json-well-known.ts';
import { accountOf, type Caller } from '../caller.ts';
import { decodeRecord } from '../stored-record.ts';
import { pageToken, readPageToken } from './page-token.ts';

/** Dependencies of listPayments. */
export type ListDeps = {
  readonly database: Database;
  /** Key that authenticates page tokens. */
  readonly pageTokenKey: Uint8Array;
};

const DEFAULT_PAGE_SIZE = 20;
// The query reads one row more than the page.
const MAX_PAGE_SIZE = MAX_LISTED - 1;

/**
 * Lists the current payments of the caller's account, newest first.
 *
 * @param request must satisfy the rules of its .proto.
 * @returns a page, and the token of the next page; "" on the last page.
 * @throws ServiceError INVALID_CREDENTIALS with only the public key; INVALID_PARAMETERS for a malformed time, and for a
 * page token that is malformed or belongs to another account or filter.
 */
export async function listPayments(
  deps: ListDeps,
  request: ListPaymentsRequest,
  caller: Pick<Caller, 'accountId' | 'secretPresented'>,
): Promise<{ readonly payments: Payment[]; readonly nextPageToken: string }> {
  const filter: PaymentFilter = {
    accountId: accountOf(caller),
    merchantOrderId: request.merchantOrderId || undefined,
    status: request.status ? Payment_Status[request.status] : undefined,
    from: firstTime('created_from', request.createdFrom),
    before: timeAfter('created_to', request.createdTo),
  };
  const after = request.pageToken ? readPageToken(deps.pageTokenKey, filter, request.pageToken) : undefined;
  // A page size above the maximum is reduced to the maximum (AIP-158).
  const size = Math.min(request.pageSize || DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE);
  // The extra row shows whether there is another page.
  const found = await listStored(deps.database, filter, after, size + 1);
  const shown = found.slice(0, size);
  const last = shown.at(-1);
  return {
    payments: shown.map(({ record }) => decodeRecord(record)),
    nextPageToken: last && found.length > size ? pageToken(deps.pageTokenKey, filter, last) : '',
  };
}

const DATE = /^\d{4}-\d\d-\d\d$/;
const SECONDS_A_DAY = 86_400n;
const LAST_SECOND = 253_402_300_799n;

/** Returns the first moment of a date or time; undefined for "". @throws ServiceError INVALID_PARAMETERS. */
export function firstTime(field: string, text: string): string | undefined {
  return text === '' ? undefined : timestampText(parseTime(field, text));
}

/**
 * Returns the moment just after a date or time: a day later for a date, a microsecond later for a time; undefined for
 * "" and after the year 9999.
 *
 * @throws ServiceError INVALID_PARAMETERS.
 */
export function timeAfter(field: string, text: string): string | undefined {
  if (text === '') return undefined;
  const time = parseTime(field, text);
  const micros = DATE.test(text) ? 0 : Math.trunc(time.nanos / 1000) + 1;
  const seconds = time.seconds + (DATE.test(text) ? SECONDS_A_DAY : BigInt(Math.trunc(micros / 1e6)));
  if (seconds > LAST_SECOND) return undefined;
  return timestampText(create(TimestampSchema, { seconds, nanos: (micros % 1e6) * 1000 }));
}

function parseTime(field: string, text: string): Timestamp {
  // In a query string, an unescaped plus sign decodes to a space.
  const spelled = DATE.test(text) ? `${text}T00:00:00Z` : text.replace(/(T.*) (\d\d:\d\d)$/, '$1+$2');
  const time = parseTimestamp(spelled);
  if (time) return time;
  const message = 'must be a time such as 2026-01-31T09:08:07Z (RFC 3339) or a date such as 2026-01-31';
  throw invalidField(field, 'INVALID_FORMAT', message);
}
