import { type Advice, adviceOfScheme, type DeclineReason } from '../port/decline.ts';
import type { Outcome } from '../port/outcome.ts';
import type { HttpResult } from './http-client.ts';
import { unknownOutcome } from './provider-answer.ts';

/**
 * The meaning of a refusal that is not a decline.
 *
 * - `turned_away`: nothing happened; the provider refused only this request.
 * - `unreachable`: nothing happened; the provider refuses all of the connection's requests because of its key or rate.
 * - `unknown`: something may have happened.
 */
export type RefusalMeaning = 'turned_away' | 'unreachable' | 'unknown';

/** A row of a provider's table of refusals. */
type Row<Column extends string, Meaning> = { readonly [Name in Column]?: string } & {
  readonly means: Meaning;
};

/** Rows for every provider: HTTP statuses that refuse a request before the provider acts on it. */
export const BY_STATUS = [
  { status: '400 404 405 413 415 422', means: 'turned_away' },
  { status: '401 403 429', means: 'unreachable' },
] as const;

/**
 * Creates a provider's table of refusals. A row matches a response that has one of the row's words in each of the row's
 * columns; '' stands for an absent value. The first matching row counts.
 *
 * @param rows words are separated by white space. `Other` holds meanings specific to this provider.
 * @returns a function that finds the meaning of a response's columns; undefined if no row matches. Its `rows` are the
 *   table's.
 */
export function refusalTable<Column extends string, Other = never>(
  rows: readonly Row<Column, DeclineReason | RefusalMeaning | Other>[],
) {
  const read = rows.map(({ means, ...columns }) => ({
    means: means as DeclineReason | RefusalMeaning | Other,
    columns: Object.entries(columns as Record<string, string>).map(
      ([name, words]) => [name as Column, new Set(words.split(/\s+/))] as const,
    ),
  }));
  const find = (shown: { readonly [Name in Column]?: string | number | undefined }) =>
    read.find(({ columns }) => columns.every(([name, words]) => words.has(String(shown[name] ?? ''))))?.means;
  return Object.assign(find, { rows });
}

/** Advice for a decline by a system that is unavailable. */
export const SOON: Advice = { laterHours: 1 };
/** Advice for a decline by a limit or a balance. */
export const ANOTHER_DAY: Advice = { laterHours: 24 };

const DO_NOT_HONOR = '05';
const DUPLICATE = '94';

/**
 * Returns a decline reason. Code 94 means that the issuer has just seen an equal charge, so a failover would add
 * another.
 *
 * @param advice by the provider's own word; never derived from the code, which is our equivalent.
 */
export function declineBy(iso8583Code: string, advice: Advice): DeclineReason {
  return { iso8583Code, advice, ...(iso8583Code === DUPLICATE && { nowhereElse: true }) };
}

/** Returns the decline reason of a response code that the scheme or the issuer itself gave. */
export function declineByScheme(iso8583Code: string): DeclineReason {
  return declineBy(iso8583Code, adviceOfScheme(iso8583Code));
}

/** The meaning of a decline for an unlisted reason: a soft decline. */
export const SOFT_DECLINE: DeclineReason = declineBy(DO_NOT_HONOR, 'NONE');

/** Returns the meaning that the table gives a decline reason, or a soft decline if it gives none. */
export function declineOrSoft(meaning: DeclineReason | string | undefined): DeclineReason {
  return typeof meaning === 'object' ? meaning : SOFT_DECLINE;
}

/** Builds the rows of a table's declines. @param codesByIso8583 the words of `column`, keyed by ISO 8583 code. */
export function declines<Column extends string>(
  column: Column,
  advice: Advice,
  codesByIso8583: Readonly<Record<string, string>>,
): readonly Row<Column, DeclineReason>[] {
  return Object.entries(codesByIso8583).map(
    ([iso8583Code, words]) =>
      ({ [column]: words, means: declineBy(iso8583Code, advice) }) as Row<Column, DeclineReason>,
  );
}

/** Matches a field name or an error code. Any other text may be a value. */
const REFUSED_NAME = /^[\w./[\]-]{1,100}$/;

/**
 * Builds the outcome of a refusal that is not a decline. Only a body in the provider's own form counts as a refusal: a
 * proxy, which may have forwarded the request, uses the same statuses. An undefined meaning is `unknown`, and so is a
 * decline where none is possible.
 *
 * @param refused the field name or error code for which the provider refuses the request.
 * @param said shown in the detail, after the status.
 */
export function refusedOutcome(
  meaning: RefusalMeaning | DeclineReason | undefined,
  { status, said = '', refused = '' }: { status: number; said?: string; refused?: string },
): Outcome {
  if (meaning !== 'turned_away' && meaning !== 'unreachable') {
    return unknownOutcome(`the provider's response: ${status}${said}`);
  }
  const detail = `the provider refused the request: ${status}${said}`;
  if (meaning === 'unreachable') return { kind: 'not_sent', detail, because: meaning };
  const named = REFUSED_NAME.test(refused) ? refused : '';
  return { kind: 'not_sent', detail, because: meaning, refused: named };
}

/** Path of a field in a request body: field names and list positions. */
type FieldPath = readonly string[];

/** Optional fields of a request, which describe the payment but move no money. */
export type OptionalFields = {
  /** Matches the names as the provider writes them in errors. */
  readonly names: RegExp;
  /** Returns the names of the fields for which a response refuses the request; '' if the fault is not in a field. */
  refusedBy(result: HttpResult): readonly string[];
  pathOf(name: string): FieldPath;
};

/**
 * Sends a request that charges nothing. If the provider refuses it only for optional fields, sends it once more without
 * them. A request that charges is never sent twice.
 *
 * @param send `isRepeat`: the request may need a separate idempotency key.
 */
export async function sendMended<Body extends object>(
  body: Body,
  send: (body: Body, isRepeat: boolean) => Promise<HttpResult>,
  { names, refusedBy, pathOf }: OptionalFields,
): Promise<HttpResult> {
  const result = await send(body, false);
  const refused = refusedBy(result);
  if (refused.length === 0 || !refused.every((name) => names.test(name))) return result;
  const mended = refused
    .map(pathOf)
    .reduce<Body | undefined>((left, path) => left && withoutField(left, path), body);
  return mended ? send(mended, true) : result;
}

/** Copies a body without one field; undefined if the body lacks the field. */
function withoutField<Body extends object>(body: Body, path: FieldPath): Body | undefined {
  const [name = '', ...rest] = path;
  const inner = Object.hasOwn(body, name) ? (body as Record<string, unknown>)[name] : undefined;
  if (inner === undefined) return undefined;
  // Forms and JSON leave out a field whose value is undefined.
  if (rest.length === 0) return { ...body, [name]: undefined };
  const kept = typeof inner === 'object' && inner !== null ? withoutField(inner, rest) : undefined;
  if (!kept) return undefined;
  return Array.isArray(body)
    ? (body.with(Number(name), kept) as Body & unknown[])
    : { ...body, [name]: kept };
}
