/** Path of a field in a request's body: names of fields, and positions in lists. */
export type FieldPath = readonly string[];

/**
 * Copies a request's body without one field, which the provider has refused. Only a request that charges nothing may be
 * sent a second time without a field.
 *
 * @returns undefined if the body does not have the field.
 */
export function withoutField<Body extends object>(body: Body, path: FieldPath): Body | undefined {
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
