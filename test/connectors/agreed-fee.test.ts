import { describe, expect, it } from 'vitest';
import { type AgreedFee, agreedFeeInWords, feeOn, readAgreedFee } from '#src/connectors/port/agreed-fee.ts';

const fields = (more: object = {}) => ({
  ...{ currency: 'USD', paymentMethodType: '', percent: '2.9', fixed: '0.30', tolerance: '', ...more },
});
const feeOf = (more: object) => readAgreedFee(fields(more)) as AgreedFee;

describe('an agreed fee', () => {
  it('is read exactly, in the digits of its currency', () => {
    expect(readAgreedFee(fields({ paymentMethodType: 'PIX', tolerance: '0.02' }))).toEqual({
      ...{ currency: 'USD', methodType: 'PIX', percent: 2_900_000n, fixed: 30n, tolerance: 2n },
    });
    expect(readAgreedFee(fields({ currency: 'KWD', percent: '100', fixed: '' }))).toEqual({
      ...{ currency: 'KWD', methodType: undefined, percent: 100_000_000n, fixed: 0n, tolerance: undefined },
    });
    expect(feeOf({ percent: '', fixed: '0', tolerance: '0' })).toMatchObject({ percent: 0n, tolerance: 0n });
  });

  it.each([
    [{ currency: 'XYZ' }, ['currency']],
    [{ percent: '', fixed: '' }, ['percent']],
    [{ percent: '-1' }, ['percent']],
    [{ percent: '100.000001' }, ['percent']],
    [{ percent: '2.9000001' }, ['percent']],
    [{ percent: '2,9' }, ['percent']],
    [{ percent: '2.9%' }, ['percent']],
    [{ fixed: '-0.30' }, ['fixed']],
    [{ fixed: '-0' }, ['fixed']],
    [{ fixed: '0.301' }, ['fixed']],
    [{ currency: 'JPY', fixed: '0.5' }, ['fixed']],
    [{ fixed: '1e3' }, ['fixed']],
    [{ fixed: '9999999999999' }, ['fixed']],
    [{ percent: 'x', fixed: 'y', tolerance: '0.001' }, ['percent', 'fixed', 'tolerance']],
  ])('with %j is refused by the names of its fields', (more, names) => {
    const faults = readAgreedFee(fields(more));
    expect('currency' in faults ? [] : faults.map(({ name }) => name)).toEqual(names);
  });

  it.each([
    [{}, 5575n, 192n],
    // 0.5 minor units are rounded up, and anything less down.
    [{ percent: '0.5', fixed: '' }, 100n, 1n],
    [{ percent: '0.5', fixed: '' }, 99n, 0n],
    [{ percent: '0.000001', fixed: '' }, 49_999_999n, 0n],
    [{ percent: '0.000001', fixed: '' }, 50_000_000n, 1n],
    [{ percent: '', fixed: '1' }, 5n, 100n],
    [{ currency: 'JPY', percent: '3.6', fixed: '30' }, 1_250n, 75n],
    [{ percent: '3.333333' }, 9_007_199_254_740_991n, 300_239_945_134_066n],
  ])('of %j on %d minor units is %d', (more, gross, fee) => {
    expect(feeOn(feeOf(more), gross)).toBe(fee);
  });

  it.each([
    [{}, 'USD: 2.9% + 0.30'],
    [{ paymentMethodType: 'PIX', fixed: '', tolerance: '0.02' }, 'USD PIX: 2.9%, within 0.02'],
    [{ percent: '' }, 'USD: 0.30'],
  ])('of %j is described in words', (more, words) => {
    expect(agreedFeeInWords(fields(more))).toBe(words);
  });
});
