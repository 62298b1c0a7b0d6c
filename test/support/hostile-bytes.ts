import fc from 'fast-check';

/** A change made to bytes. */
const mutation = fc.record({
  kind: fc.constantFrom('flip', 'cut', 'insert', 'remove', 'repeat', 'overwrite'),
  at: fc.double({ min: 0, max: 1, noNaN: true }),
  length: fc.integer({ min: 1, max: 64 }),
  bytes: fc.oneof(
    fc.uint8Array({ minLength: 1, maxLength: 16 }),
    fc.constantFrom(
      Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f),
      Uint8Array.of(0xc0, 0x80),
      Uint8Array.of(0xed, 0xa0, 0x80),
      Uint8Array.of(0),
      Uint8Array.of(0x0b, 0x0c),
    ),
  ),
});

/** Up to five mutations, as a function of the bytes to mutate. */
export const mutate: fc.Arbitrary<(bytes: Uint8Array) => Uint8Array> = fc
  .array(mutation, { minLength: 1, maxLength: 5 })
  .map((mutations) => (bytes) => mutations.reduce(mutated, bytes));

function mutated(
  bytes: Uint8Array,
  { kind, at, length, bytes: given }: typeof mutation extends fc.Arbitrary<infer M> ? M : never,
): Uint8Array {
  const start = Math.floor(at * bytes.length);
  const before = bytes.subarray(0, start);
  const after = bytes.subarray(start);
  switch (kind) {
    case 'cut':
      return before;
    case 'insert':
      return Buffer.concat([before, given, after]);
    case 'remove':
      return Buffer.concat([before, after.subarray(length)]);
    case 'repeat':
      return Buffer.concat([before, ...Array.from({ length }, () => after.subarray(0, length)), after]);
    case 'overwrite':
      return Buffer.concat([before, given, after.subarray(given.length)]);
    default: {
      const flipped = Buffer.from(bytes);
      if (flipped.length > 0)
        flipped[start % flipped.length] = (flipped[start % flipped.length] ?? 0) ^ (1 << (length % 8));
      return flipped;
    }
  }
}

/** The bytes of a binary message: valid and invalid Protobuf wire format. */
export const hostileBinary: fc.Arbitrary<Uint8Array> = fc.oneof(
  fc.uint8Array({ maxLength: 200 }),
  // Groups and nested messages, deeper than any stack should allow.
  fc.integer({ min: 1, max: 30_000 }).map((depth) => Buffer.alloc(depth, 0x0b)),
  fc.integer({ min: 1, max: 300 }).map(nestedStruct),
  // Fields of every number and type, with wrong lengths.
  fc
    .array(
      fc.tuple(
        fc.integer({ min: 0, max: 40 }),
        fc.integer({ min: 0, max: 7 }),
        fc.uint8Array({ maxLength: 12 }),
      ),
      { maxLength: 40 },
    )
    .map((fields) =>
      Buffer.concat(
        fields.map(([number, type, bytes]) =>
          Buffer.concat([Buffer.of(((number << 3) | type) & 0x7f), bytes]),
        ),
      ),
    ),
);

/** customer_payer.device_fingerprints[0] as a Value of nested lists. */
function nestedStruct(depth: number): Uint8Array {
  let value = Buffer.from([0x08, 0x00]);
  for (let i = 0; i < depth; i++) value = Buffer.concat([tagged(6, Buffer.concat([tagged(1, value)]))]);
  return tagged(7, tagged(12, value));
}

function tagged(number: number, bytes: Uint8Array): Buffer {
  const length: number[] = [];
  for (let rest = bytes.length; ; rest >>>= 7) {
    length.push(rest > 0x7f ? (rest & 0x7f) | 0x80 : rest);
    if (rest <= 0x7f) break;
  }
  return Buffer.concat([Buffer.of((number << 3) | 2, ...length), bytes]);
}
