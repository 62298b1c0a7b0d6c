import { create, toBinary } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { ConnectionConfigSchema } from '#gen/payments/v1/catalogue_pb.js';
import { type BrowserInfo, BrowserInfoSchema } from '#gen/payments/v1/customer_payer_pb.js';
import {
  CardDataInputSchema,
  CardDataSchema,
  StoredCredentialsSchema,
  ThreeDSecureSchema,
} from '#gen/payments/v1/payment_method_pb.js';
import { CreatePaymentRequestSchema } from '#gen/payments/v1/payment_service_pb.js';
import type { CardOptions } from '#src/connectors/port/attempt.ts';
import { CARDS_ONLY, type Capabilities, SECURITY_CODE } from '#src/connectors/port/capabilities.ts';
import type { CardSource } from '#src/payments/method/card-source.ts';
import {
  describeLack,
  featuresAsked,
  lacksAt,
  lacksOf as lacksFor,
  merchantsFeature,
  notOffered,
} from '#src/payments/method/features.ts';
import type { RequestedMethod } from '#src/payments/method/payment-method.ts';
import type { StoredToken } from '#src/store/tables/one-time-tokens.ts';
import { CARD_OPTIONS } from '../connectors/attempts.ts';

const card = (options: Partial<CardOptions>): RequestedMethod => ({
  ...{ by: 'card', type: 'CARD', card: { source: 'stored', stored: undefined, securityCode: '' } },
  ...{ ...CARD_OPTIONS, ...options },
});
const WALLET = { by: 'wallet', type: 'WALLET', enrolled: undefined, cardType: undefined } as const;
const enrolledAt = (at: string): RequestedMethod => ({ ...WALLET, enrolled: { at, token: 't' } });
const PAGE: RequestedMethod = { by: 'payer', type: 'WALLET', show: 'page' };
const lacksOf = (method: RequestedMethod, can: Capabilities, browserInfo?: BrowserInfo) =>
  lacksFor(
    method,
    create(CreatePaymentRequestSchema, browserInfo && { customerPayer: { browserInfo } }),
    can,
    0,
  );
const ALL: Capabilities = {
  ...CARDS_ONLY,
  methods: ['CARD', 'PAYER_PAGE', 'WALLET'],
  authorization: true,
  verify: true,
  installments: true,
  challenge: true,
  externalThreeDSecure: true,
  storedCredentials: true,
};
const CARD = 'payment_method.detail.card';

describe('lacksOf', () => {
  it.each<[RequestedMethod, Partial<Capabilities>, string]>([
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
    [card({}), { methods: ['PAYER_PAGE', 'WALLET'] }, 'payment_method.type'],
    [PAGE, { methods: ['CARD', 'WALLET'] }, 'payment_method.type'],
    [WALLET, { methods: ['CARD', 'PAYER_PAGE'] }, 'payment_method.type'],
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
    expect(lacksOf(card(setup), needs, browser)).toEqual([]);
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

  it('lacksOf names what a connection needs of every card and its payer', () => {
    const needs: Capabilities = {
      ...ALL,
      missingForCards: ({ payer, hasSecurityCode }) => [
        ...(payer?.email ? [] : ['customer_payer.email']),
        ...(hasSecurityCode ? [] : [SECURITY_CODE]),
      ],
    };
    const lacking = (method: RequestedMethod, can = needs) => lacksOf(method, can).map(({ field }) => field);
    const withCard = (source: CardSource): RequestedMethod =>
      ({ ...card({}), by: 'card', card: source }) as RequestedMethod;
    const sent = (securityCode: string) =>
      withCard({ source: 'sent', input: create(CardDataInputSchema, { securityCode }) });
    const token = (securityCodeLength: number) => {
      const data = toBinary(CardDataSchema, create(CardDataSchema, { securityCodeLength }));
      return withCard({ source: 'token', token: { card: data } as StoredToken });
    };
    const both = ['customer_payer.email', SECURITY_CODE];
    expect(lacking(card({}))).toEqual(both);
    expect(lacking(withCard({ source: 'stored', stored: undefined, securityCode: '123' }))).toEqual([
      both[0],
    ]);
    expect([lacking(sent('')), lacking(sent('123'))]).toEqual([both, [both[0]]]);
    expect([lacking(token(0)), lacking(token(3))]).toEqual([both, [both[0]]]);
    expect(lacking(withCard({ source: 'token', token: undefined }))).toEqual([both[0]]);
    expect(lacking(PAGE)).toEqual([]);
    expect(lacking(card({}), { ...needs, methods: ['PAYER_PAGE'] })).toEqual(['payment_method.type']);
    const email = create(CreatePaymentRequestSchema, { customerPayer: { email: 'ana@example.com' } });
    expect(lacksFor(sent('123'), email, needs, 0)).toEqual([]);
    const error = notOffered(lacksOf(card({}), needs));
    expect(error.fields).toMatchObject(both.map((field) => ({ field, code: 'REQUIRED' })));
  });

  it('a wallet that pays with a token lacks it, unless it was enrolled', () => {
    const can: Capabilities = { ...ALL, walletTokens: ['WALLET'] };
    const missing = lacksOf(WALLET, can);
    expect(missing).toEqual([
      { field: 'payment_method.detail.wallet.payment_token', what: 'WALLET payments', isMissing: true },
    ]);
    expect(notOffered(missing).fields).toMatchObject([{ code: 'REQUIRED' }]);
    const enrolled = create(CreatePaymentRequestSchema, { paymentMethod: { vaultedToken: 't' } });
    expect(lacksFor(WALLET, enrolled, can, 0)).toEqual([]);
    expect(lacksOf({ ...WALLET, type: 'OTHER' }, can)).toEqual([]);
  });

  it('lacksOf asks only cards for the features of cards', () => {
    const can: Capabilities = { ...CARDS_ONLY, methods: ALL.methods };
    expect([WALLET, PAGE].map((method) => lacksOf(method, can))).toEqual([[], []]);
  });

  it('lacksOf finds that every connection can make a plain card purchase, even with a soft descriptor', () => {
    expect(lacksOf(card({ softDescriptor: 'SHOP' }), CARDS_ONLY)).toEqual([]);
  });
});

describe('lacksAt', () => {
  const connections = new Map([
    ['one', { capabilities: ALL }],
    ['cards', { capabilities: CARDS_ONLY }],
  ]);
  const lacksAtEach = (method: RequestedMethod) => {
    const at = lacksAt(connections, method, create(CreatePaymentRequestSchema), 0);
    return ['one', 'cards', 'closed'].map((id) =>
      at(create(ConnectionConfigSchema, { id })).map(({ field, isElsewhere = false }) => [
        field,
        isElsewhere,
      ]),
    );
  };
  const type = ['payment_method.type', false];
  const elsewhere = ['payment_method.vaulted_token', true];

  it.each<[string, RequestedMethod, unknown[]]>([
    ['a card', card({}), [[], [], []]],
    ['a wallet that was not looked up', WALLET, [[], [type], []]],
    ['a wallet that is enrolled here', enrolledAt('one'), [[], [elsewhere], [elsewhere]]],
    ['a wallet that is enrolled at cards', enrolledAt('cards'), [[elsewhere], [type], [elsewhere]]],
    ['a payer on a page', PAGE, [[], [type], []]],
  ])(
    '%s lacks what its connection cannot do, and nothing is known of a closed one',
    (_name, method, lacks) => {
      expect(lacksAtEach(method)).toEqual(lacks);
    },
  );

  it('the refusal of a wallet says that it is enrolled elsewhere only if no connection lacks anything else', () => {
    const at = lacksAt(connections, enrolledAt('cards'), create(CreatePaymentRequestSchema), 0);
    const [one, cards] = ['one', 'cards'].map((id) => at(create(ConnectionConfigSchema, { id })));
    const error = notOffered(one ?? []);
    expect(error.fields).toMatchObject([{ field: 'payment_method.vaulted_token', code: 'NOT_SUPPORTED' }]);
    expect(error.message).toContain('was enrolled at a connection outside');
    const fields = notOffered([...(one ?? []), ...(cards ?? [])]).fields.map(({ field }) => field);
    expect(fields).toEqual(['payment_method.type']);
  });
});

it('featuresAsked lists the fields that ask for features, in the order of refusals', () => {
  expect(featuresAsked(CARD_OPTIONS)).toEqual([]);
  const asked = featuresAsked({ ...CARD_OPTIONS, softDescriptor: 'SHOP', installments: 2, capture: false });
  expect(asked).toEqual(['capture', 'installments', 'soft_descriptor']);
});

describe('merchantsFeature', () => {
  it.each<[Partial<CardOptions>, string | undefined]>([
    [{}, undefined],
    [{ installments: 3, threeDSecureSetupId: 'setup-1' }, undefined],
    [{ verify: true }, 'verify'],
    [{ capture: false }, 'capture'],
    [{ softDescriptor: 'SHOP' }, 'soft_descriptor'],
    [{ storedCredentials: create(StoredCredentialsSchema) }, 'stored_credentials'],
    [{ installments: 3, threeDSecure: create(ThreeDSecureSchema) }, 'three_d_secure'],
  ])('merchantsFeature names what only merchants may ask for: of %o it is %s', (options, field) => {
    expect(merchantsFeature({ ...CARD_OPTIONS, ...options })).toBe(field);
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
