import { createHmac, timingSafeEqual } from 'node:crypto';
import { invalidField } from '#src/service-error.ts';
import type { PagePosition } from '#src/store/tables/list-payments.ts';

const MAC_BYTES = 16;
const POSITION = /^([0-9a-f-]{36})(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)$/;

/**
 * Returns the token of the page after a position, opaque to callers.
 *
 * @param filter the list's filter, including the account; the token is valid for no other filter.
 */
export function pageToken(key: Uint8Array, filter: object, { id, createdAt }: PagePosition): string {
  const position = Buffer.from(id + createdAt);
  return Buffer.concat([mac(key, filter, position), position]).toString('base64url');
}

/**
 * Parses a page token.
 *
 * @throws ServiceError INVALID_PARAMETERS for a string that `pageToken` did not make for this filter.
 */
export function readPageToken(key: Uint8Array, filter: object, token: string): PagePosition {
  const bytes = Buffer.from(token, 'base64url');
  const position = bytes.subarray(MAC_BYTES);
  const [, id, createdAt] = POSITION.exec(position.toString('latin1')) ?? [];
  // Rejects other encodings of the same bytes too, since tokens are compared as strings elsewhere.
  const isOurs =
    bytes.toString('base64url') === token &&
    bytes.length > MAC_BYTES &&
    timingSafeEqual(bytes.subarray(0, MAC_BYTES), mac(key, filter, position));
  if (isOurs && id !== undefined && createdAt !== undefined) return { id, createdAt };
  const message = 'must be the next_page_token of a list with the same filters';
  throw invalidField('page_token', 'INVALID_FORMAT', message);
}

/** A request for a page. */
export type PageRequest = {
  readonly size: number;
  /** The token of the page; "" for the first. */
  readonly token: string;
};

/**
 * Reads a page of a list.
 *
 * @param filter as for `pageToken`.
 * @param read reads at most so many rows after a position.
 * @returns the rows, and the token of the next page; "" on the last page.
 * @throws ServiceError INVALID_PARAMETERS for a token that is malformed or belongs to another filter.
 */
export async function readPage<T extends PagePosition>(
  key: Uint8Array,
  filter: object,
  { size, token }: PageRequest,
  read: (after: PagePosition | undefined, limit: number) => Promise<readonly T[]>,
): Promise<{ readonly rows: readonly T[]; readonly nextPageToken: string }> {
  // The extra row shows whether there is another page.
  const found = await read(token ? readPageToken(key, filter, token) : undefined, size + 1);
  const rows = found.slice(0, size);
  const last = rows.at(-1);
  return { rows, nextPageToken: last && found.length > size ? pageToken(key, filter, last) : '' };
}

function mac(key: Uint8Array, filter: object, position: Uint8Array): Buffer {
  const hmac = createHmac('sha256', key).update(JSON.stringify(filter)).update('\0').update(position);
  return hmac.digest().subarray(0, MAC_BYTES);
}
