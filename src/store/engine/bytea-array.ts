/** OID of bytea (PostgreSQL, pg_type). */
const BYTEA_OID = 17;
const HEADER_BYTES = 20;

/**
 * Encodes byte strings as a `bytea[]` in PostgreSQL's binary format (array_send): a Buffer is sent as it is, where a
 * JavaScript array would be written out as hexadecimal text.
 */
export function byteaArray(values: readonly (Uint8Array | null)[]): Buffer {
  const length = values.reduce((sum, value) => sum + 4 + (value?.length ?? 0), HEADER_BYTES);
  const array = Buffer.allocUnsafe(length);
  // Number of dimensions, whether there are nulls, the element type; then the dimension's length and lower bound.
  [1, values.includes(null) ? 1 : 0, BYTEA_OID, values.length, 1].forEach((int, index) => {
    array.writeInt32BE(int, index * 4);
  });
  let at = HEADER_BYTES;
  for (const value of values) {
    at = array.writeInt32BE(value?.length ?? -1, at);
    if (!value) continue;
    array.set(value, at);
    at += value.length;
  }
  return array;
}
