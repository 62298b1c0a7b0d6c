import { create, type JsonObject } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import { ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import { readIntent } from '#src/connectors/stripe/answers.ts';
import { codeFields, customerFields } from '#src/connectors/stripe/code-fields.ts';
import { fromCode, isReusable } from '#src/connectors/stripe/from-code.ts';
import { intentAnswer } from './answers.ts';
import { codeAttempt } from './stripe-under-test.ts';

const SPEI = { type: 'spei', spei: { clabe: '002180650612345670', bank_name: 'BANAMEX' } };

function outcomeOf(over: JsonObject) {
  const body = intentAnswer(codeAttempt('SPEI'), { latest_charge: null, ...over });
  return fromCode(readIntent(body), body, create(ProviderDataSchema, { status: String(body.status) }));
}

/** The outcome of an intent that awaits its payer. */
const awaiting = (action: JsonObject) =>
  outcomeOf({ status: 'requires_action', amount_received: 0, next_action: action });
const transfer = (details: JsonObject) =>
  awaiting({
    display_bank_transfer_instructions: {
      ...{ amount_remaining: 10_000, currency: 'mxn', financial_addresses: [SPEI], ...details },
    },
  });

describe('the outcome of a code at Stripe', () => {
  it.each([
    ['another amount that arrived', { amount_received: 1 }, { kind: 'unknown', alarm: true }],
    ['a manual capture', { capture_method: 'manual' }, { kind: 'unknown', alarm: true }],
    ['an unknown status', { status: 'requires_capture' }, { kind: 'unknown' }],
    ['a code that is nowhere', { status: 'requires_action', next_action: {} }, { kind: 'unknown' }],
  ])('the outcome is unknown for %s', (_what, over, outcome) => {
    expect(outcomeOf(over)).toMatchObject(outcome);
  });

  it('an intent that never had a code never happens, and one that had a code has expired', () => {
    const ended = { status: 'canceled', amount_received: 0 };
    expect(outcomeOf({ ...ended, payment_method: null })).toMatchObject({ kind: 'not_sent' });
    expect(outcomeOf({ ...ended, payment_method: null, latest_charge: 'py_1' })).toMatchObject({
      kind: 'expired',
    });
    expect(outcomeOf({ status: 'requires_confirmation', amount_received: 0 })).toBe('open');
  });

  it('an end that is no time is left out', () => {
    const code = { data: '000201', expires_at: 1e300 };
    expect(awaiting({ pix_display_qr_code: code })).not.toHaveProperty('until');
    expect(awaiting({ pix_display_qr_code: { data: '000201' } })).toMatchObject({
      show: { instructions: { text: '000201' } },
    });
  });

  it('a transfer goes to the CLABE among the addresses, and to no other account', () => {
    const others = [{ type: 'iban', spei: { clabe: '1' } }, { type: 'spei' }];
    expect(transfer({ financial_addresses: [...others, SPEI] })).toMatchObject({
      show: { instructions: { account: '002180650612345670', bankName: 'BANAMEX' } },
    });
    expect(transfer({ financial_addresses: others })).toMatchObject({ kind: 'unknown' });
    expect(transfer({ financial_addresses: null })).toMatchObject({ kind: 'unknown' });
  });

  it.each([
    [10_000, 'mxn', 5_000n],
    [15_000, 'mxn', undefined],
    [15_001, 'mxn', undefined],
    [10_000, 'usd', undefined],
    ['10000', 'mxn', undefined],
    [null, 'mxn', undefined],
  ])(
    'a part has arrived only if less remains of the same currency: %j %s',
    (amount_remaining, currency, received) => {
      const outcome = transfer({ amount_remaining, currency });
      if (outcome === 'open' || outcome.kind !== 'awaits_payer') throw new Error('not open');
      expect(outcome.received?.minorUnits).toBe(received);
    },
  );

  it('only an ended intent that is not canceled could get another code', () => {
    const failure = { last_payment_error: { code: 'payment_intent_payment_attempt_expired' } };
    expect(isReusable(outcomeOf({ status: 'requires_payment_method', ...failure }))).toBe(true);
    expect(isReusable(outcomeOf({ status: 'canceled', ...failure }))).toBe(false);
    expect(isReusable(outcomeOf({}))).toBe(false);
    expect(isReusable('open')).toBe(false);
  });
});

describe('the fields of a code at Stripe', () => {
  it('the fields contain only what is known about the payer', () => {
    const attempt = codeAttempt('PIX', { customerPayer: create(CustomerPayerSchema) });
    const fields = codeFields(attempt, attempt.money, 'pix', undefined);
    expect(JSON.parse(JSON.stringify(fields?.payment_method_data))).toEqual({
      type: 'pix',
      billing_details: {},
    });
    expect(fields).toMatchObject({ confirm: true, expand: ['latest_charge'], payment_method_types: ['pix'] });
    const { transactionId, paymentId } = attempt;
    expect(JSON.parse(JSON.stringify(customerFields(attempt)))).toEqual({
      description: 'One payment by transfer',
      metadata: { transaction_id: transactionId, payment_id: paymentId },
    });
  });

  it("the payer's own name, e-mail and address are sent, with the payment's country unless they name another", () => {
    const attempt = codeAttempt('BOLETO');
    expect(codeFields(attempt, attempt.money, 'boleto', undefined)?.payment_method_data).toMatchObject({
      boleto: { tax_id: '39053344705' },
      billing_details: { name: 'Ana Gómez', email: 'ana@example.com', address: { country: 'BR' } },
    });
    expect(customerFields(attempt)).toMatchObject({ name: 'Ana Gómez', email: 'ana@example.com' });
    const customerPayer = create(CustomerPayerSchema, { billingAddress: { city: 'Recife' } });
    const bare = codeAttempt('BOLETO', { customerPayer });
    expect(codeFields(bare, bare.money, 'boleto', undefined)?.payment_method_data).toMatchObject({
      billing_details: { address: { city: 'Recife', country: 'BR' } },
    });
  });
});
