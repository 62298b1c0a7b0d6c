/** OID of bytea (PostgreSQL, pg_type). */
const BYTEA_OID = 17;
const HEADER_BYTES = 20;

/**
 * Encodes byte strings as a `bytea[]` in PostgreSQL's binary format (array_send). A Buffer is sent as is, whereas a
 * JavaScript array would be sent as hexadecimal text.
 */
export function byteaArray(values: readonly (Uint8Array | null)[]): Buffer {
  const length = values.reduce((sum, value) => sum + 4 + (value?.length ?? 0), HEADER_BYTES);
  const array = Buffer.allocUnsafe(length);
  // Number of dimensions, null flag, element type, then the length and lower bound of the dimension.
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
