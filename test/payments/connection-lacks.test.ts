import { create } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { BrowserInfoSchema } from '#gen/payments/v1/customer_payer_pb.js';
import { StoredCredentialsSchema, ThreeDSecureSchema } from '#gen/payments/v1/payment_method_pb.js';
import { Payment_Workflow } from '#gen/payments/v1/payment_pb.js';
import { CARDS_ONLY, type Capabilities } from '#src/connectors/capabilities.ts';
import { describeLack, lacksOf, notOffered } from '#src/payments/create/connection-lacks.ts';
import type { CardOptions, ChosenMethod } from '#src/payments/create/payment-method.ts';
import { CARD_OPTIONS } from '../connectors/attempts.ts';

const { DIRECT, REDIRECT } = Payment_Workflow;

const card = (options: Partial<CardOptions>): ChosenMethod => ({
  ...{ kind: 'vaulted_card', securityCode: '', type: 'CARD', workflow: DIRECT, token: 'token' },
  options: { ...CARD_OPTIONS, vaultOnSuccess: false, browser: undefined, ...options },
});
const wallet = (workflow: ChosenMethod['workflow']): ChosenMethod => ({
  ...{ kind: 'wallet', type: 'WALLET', workflow, token: undefined, cardType: undefined },
});
const ALL: Capabilities = {
  ...CARDS_ONLY,
  methods: ['card', 'wallet_redirect', 'wallet_enrollment'],
  authorization: true,
  verify: true,
  installments: true,
  challenge: true,
  externalThreeDSecure: true,
  storedCredentials: true,
};
const CARD = 'payment_method.detail.card';

describe('lacksOf', () => {
  it.each<[ChosenMethod, Partial<Capabilities>, string]>([
    [card({ verify: true }), { verify: false }, `${CARD}.verify`],
    [card({ capture: false }), { authorization: false }, `${CARD}.capture`],
    [card({ installments: 2 }), { installments: false }, `${CARD}.installments`],
    [
      card({ threeDSecureSetupId: 'setup-1' }),
      { challenge: false },
      `${CARD}.three_d_secure.three_d_secure_setup_id`,
    ],
    [
      card({ threeDSecure: create(ThreeDSecureSchema) }),
      { externalThreeDSecure: false },
      `${CARD}.three_d_secure`,
    ],
    [
      card({ storedCredentials: create(StoredCredentialsSchema) }),
      { storedCredentials: false },
      `${CARD}.stored_credentials`,
    ],
    [card({}), { methods: ['wallet_redirect', 'wallet_enrollment'] }, 'payment_method.type'],
    [wallet(REDIRECT), { methods: ['card', 'wallet_enrollment'] }, 'payment_method.type'],
    [wallet(DIRECT), { methods: ['card', 'wallet_redirect'] }, 'payment_method.type'],
  ])('lacksOf names the fields that %o requires and %o does not offer', (method, without, field) => {
    expect(lacksOf(method, ALL)).toEqual([]);
    expect(lacksOf(method, { ...ALL, ...without }).map((lack) => lack.field)).toEqual([field]);
  });

  it('lacksOf names the browser fields that a requested 3-D Secure setup requires and lacks', () => {
    const needs: Capabilities = {
      ...ALL,
      missingForChallenge: (browser) => (browser?.userAgent ? [] : ['user_agent']),
    };
    const setup = { threeDSecureSetupId: 'setup-1' };
    const browser = create(BrowserInfoSchema, { userAgent: 'Mozilla/5.0' });
    const missing = lacksOf(card(setup), needs);
    expect(missing).toMatchObject([{ field: 'customer_payer.browser_info.user_agent', isMissing: true }]);
    expect(missing.map(describeLack)).toEqual([
      '3-D Secure setups without customer_payer.browser_info.user_agent',
    ]);
    expect(lacksOf(card({ ...setup, browser }), needs)).toEqual([]);
    expect(lacksOf(card({}), needs)).toEqual([]);
    const error = notOffered(missing);
    expect(error.fields.map(({ code }) => code)).toEqual(['REQUIRED']);
    expect(error.message).toMatch(/customer_payer\.browser_info\.user_agent.* is required/);
  });

  it('lacksOf names the required fields that 3-D Secure results lack', () => {
    const needs: Capabilities = { ...ALL, missingForResults: ({ cryptogram }) => (cryptogram ? [] : ['c']) };
    const threeDSecure = create(ThreeDSecureSchema, { version: '2.2.0' });
    const field = `${CARD}.three_d_secure.c`;
    expect(lacksOf(card({ threeDSecure }), needs)).toMatchObject([{ field, isMissing: true }]);
    expect(lacksOf(card({ threeDSecure: { ...threeDSecure, cryptogram: 'M6+9' } }), needs)).toEqual([]);
    expect(lacksOf(card({}), needs)).toEqual([]);
    const cannot = { ...needs, externalThreeDSecure: false };
    expect(lacksOf(card({ threeDSecure }), cannot)).toMatchObject([{ field: `${CARD}.three_d_secure` }]);
  });

  it('lacksOf finds that every connection can make a plain card purchase, even with a soft descriptor', () => {
    expect(lacksOf(card({ softDescriptor: 'SHOP' }), CARDS_ONLY)).toEqual([]);
  });
});

describe('the refusal of a request that no connection supports', () => {
  it('the refusal of an unsupported request names each field once, and says that nothing was sent', () => {
    const lacks = lacksOf(card({ verify: true, installments: 3 }), CARDS_ONLY);
    const error = notOffered([...lacks, ...lacks]);
    expect(error.reason).toBe('OPERATION_NOT_SUPPORTED');
    expect(error.fields.map(({ field, code }) => [field, code])).toEqual([
      [`${CARD}.verify`, 'NOT_SUPPORTED'],
      [`${CARD}.installments`, 'NOT_SUPPORTED'],
    ]);
    expect(error.message).toContain('requests verifications');
    expect(error.message).toContain('nothing was sent');
  });
});
