import { create } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { BinSchema } from '#gen/payments/v1/catalogue_pb.js';
import { createBinTable } from '#src/payments/method/bin-table.ts';

const bin = (prefix: string) => create(BinSchema, { prefix, issuerName: `issuer of ${prefix}` });

it('the BIN table finds the longest prefix of a number, from four to eight digits', () => {
  const bins = createBinTable([bin('4111'), bin('41111111'), bin('411111')]);
  expect(bins('4111111111111111')?.prefix).toBe('41111111');
  expect(bins('4111112222222222')?.prefix).toBe('411111');
  expect(bins('4111999999999999')?.prefix).toBe('4111');
});

it('the BIN table finds nothing if no prefix matches', () => {
  expect(createBinTable([bin('4111')])('5105105105105100')).toBeUndefined();
  expect(createBinTable([])('4111111111111111')).toBeUndefined();
});
