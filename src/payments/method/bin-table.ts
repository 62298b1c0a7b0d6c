import type { Bin } from '#gen/payments/v1/catalogue_pb.js';

/** Finds a card's issuer by the longest known prefix of its number; undefined if none is known. */
export type BinTable = (cardNumber: string) => Bin | undefined;

const LONGEST_PREFIX = 8;
const SHORTEST_PREFIX = 4;

/** Indexes the catalogue's BIN entries. */
export function createBinTable(bins: readonly Bin[]): BinTable {
  const byPrefix = new Map(bins.map((bin) => [bin.prefix, bin]));
  return (cardNumber) => {
    for (let length = LONGEST_PREFIX; length >= SHORTEST_PREFIX; length--) {
      const bin = byPrefix.get(cardNumber.slice(0, length));
      if (bin) return bin;
    }
    return undefined;
  };
}
