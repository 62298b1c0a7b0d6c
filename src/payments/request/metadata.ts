import { create } from '@bufbuild/protobuf';
import { type MetadataEntry, MetadataEntrySchema } from '#gen/payments/v1/payment_pb.js';

/** Encodes metadata for customers and checkout sessions as a JSON array. */
export function writeMetadata(metadata: readonly MetadataEntry[]): string {
  return JSON.stringify(metadata.map(({ key, value }) => ({ key, value })));
}

/** Decodes metadata that `writeMetadata` wrote. */
export function readMetadata(text: string): MetadataEntry[] {
  const entries = JSON.parse(text) as readonly { readonly key: string; readonly value: string }[];
  return entries.map((entry) => create(MetadataEntrySchema, entry));
}
