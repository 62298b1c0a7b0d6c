/** The value of a form field; `undefined` leaves the field out, at any depth. */
export type FormValue =
  | string
  | number
  | bigint
  | boolean
  | undefined
  | readonly FormValue[]
  | { readonly [name: string]: FormValue };

/**
 * Encodes fields as `application/x-www-form-urlencoded`, with brackets for nested fields, as Stripe and PHP expect: `{
 * card: { number: 'x' }, items: ['y'] }` is `card[number]=x&items[0]=y`, percent-encoded. Empty lists and objects are
 * left out. The caller sets the content type.
 *
 * @throws Error if a name contains a bracket, which would turn it into another field, or if a number is not a safe
 *   integer: pass money as bigint or string.
 */
export function encodeForm(fields: { readonly [name: string]: FormValue }): string {
  const pairs = new URLSearchParams();
  append(pairs, '', fields);
  return pairs.toString();
}

function append(pairs: URLSearchParams, path: string, value: FormValue): void {
  if (value === undefined) return;
  if (typeof value === 'number' && !Number.isSafeInteger(value)) {
    throw new Error('a number in a form must be a safe integer');
  }
  if (typeof value !== 'object') {
    pairs.append(path, String(value));
    return;
  }
  for (const [name, inner] of Object.entries(value)) {
    // The error omits the name, which may come from a merchant.
    if (/[[\]]/.test(name)) throw new Error('a field name in a form must not contain a bracket');
    append(pairs, path === '' ? name : `${path}[${name}]`, inner);
  }
}
