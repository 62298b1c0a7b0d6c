import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { type PaymentMethodType, PaymentMethodTypeSchema } from '#gen/payments/v1/catalogue_pb.js';
import {
  CardInputSchema,
  StoredCredentialsSchema,
  ThreeDSecureSchema,
} from '#gen/payments/v1/payment_method_pb.js';
import { Payment_Workflow, Transaction_Category } from '#gen/payments/v1/payment_pb.js';
import { CreatePaymentRequestSchema } from '#gen/payments/v1/payment_service_pb.js';
import {
  cardOptions,
  categoryOf,
  type MethodReferences,
  readMethod,
  workflowOfMethod,
} from '#src/payments/method/payment-method.ts';
import { ServiceError } from '#src/service-error.ts';

const { DIRECT, REDIRECT, SDK_CHECKOUT } = Payment_Workflow;
const { CARD, WALLET } = Transaction_Category;

const types = new Map<string, PaymentMethodType>(
  [
    { type: 'CARD', category: CARD, workflows: [DIRECT] },
    { type: 'WALLET', category: WALLET, workflows: [REDIRECT], countries: ['CO', 'MX'], currencies: ['COP'] },
    { type: 'WALLET_BOTH', category: WALLET, workflows: [DIRECT, REDIRECT] },
  ].map((init) => [init.type, create(PaymentMethodTypeSchema, init)]),
);

type Init = Extract<MessageInitShape<typeof CreatePaymentRequestSchema>, { $typeName?: never }>;
type MethodInit = NonNullable<Init['paymentMethod']>;

const choose = (paymentMethod: MethodInit | undefined, rest: Init = {}, references?: MethodReferences) =>
  readMethod(
    create(CreatePaymentRequestSchema, {
      country: 'CO',
      amount: { currency: 'COP', value: { value: '1' } },
      ...(paymentMethod && { paymentMethod }),
      ...rest,
    }),
    references,
    types,
  );

const card = (value: object): MethodInit => ({ type: 'CARD', detail: { kind: { case: 'card', value } } });
const wallet = (value: object): MethodInit => ({
  type: 'WALLET',
  detail: { kind: { case: 'wallet', value } },
});
const cardData = { number: '4111111111111111' };
const storedMethod = (type: string): NonNullable<MethodReferences['vaultedToken']> => ({
  ...{ id: 't', type, customerId: undefined },
  ...(type === 'CARD'
    ? {
        card: { data: new Uint8Array(), number: 'sealed', fingerprint: undefined },
        ...{ providerToken: undefined, connectionId: undefined },
      }
    : { card: undefined, providerToken: 'theirs', connectionId: 'c' }),
});

const NO_AMOUNT = { amount: undefined } as unknown as Init;

/** The reason, the field and the code of a refused choice. */
function refusal(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return [error.reason, ...error.fields.map(({ field, code }) => `${field} ${code}`)].join(' ');
  }
  throw new Error('it was not refused');
}

describe('narrowing a payment method', () => {
  it('by default, a card is captured at once and paid in one installment', () => {
    expect(choose(card({ cardData }))).toMatchObject({
      ...{ by: 'card', type: 'CARD', card: { source: 'sent', input: cardData } },
      ...{ capture: true, installments: 1, threeDSecureSetupId: undefined, verify: false },
    });
  });

  it('narrowing a card keeps every option', () => {
    const detail = {
      cardData,
      capture: false,
      installments: 6,
      threeDSecure: { threeDSecureSetupId: 'setup' },
    };
    expect(choose(card(detail))).toMatchObject({
      ...{ capture: false, installments: 6, threeDSecureSetupId: 'setup' },
    });
  });

  it('a vaulted card may have a detail or none', () => {
    const stored = storedMethod('CARD');
    const found = { vaultedToken: stored };
    expect(choose({ type: 'CARD', vaultedToken: 't' }, {}, found)).toMatchObject({
      ...{ by: 'card', card: { source: 'stored', stored, securityCode: '' } },
    });
    const code = card({ installments: 3, cardData: { securityCode: '737' } });
    expect(choose({ ...code, vaultedToken: 't' }, {}, found)).toMatchObject({
      ...{ by: 'card', installments: 3, card: { source: 'stored', stored, securityCode: '737' } },
    });
  });

  it('a one-time token implies a card, whatever type the shop gives it', () => {
    const oneTimeToken = { id: 't' } as NonNullable<MethodReferences['oneTimeToken']>;
    expect(choose({ type: 'our-form', token: 't' }, {}, { oneTimeToken })).toMatchObject({
      ...{ by: 'card', type: 'CARD', card: { source: 'token', token: oneTimeToken } },
    });
  });

  it('a wallet may have a token and a card type, or neither', () => {
    const direct = { workflow: DIRECT };
    expect(choose({ type: 'WALLET_BOTH' }, direct)).toEqual({
      ...{ by: 'wallet', type: 'WALLET_BOTH', enrolled: undefined, cardType: undefined },
    });
    const enrolled = {
      ...wallet({ cardData: { cardType: 'CREDIT' } }),
      type: 'WALLET_BOTH',
      vaultedToken: 't',
    };
    const found = { vaultedToken: storedMethod('WALLET_BOTH') };
    expect(choose(enrolled, direct, found)).toEqual({
      ...{ by: 'wallet', type: 'WALLET_BOTH', enrolled: { at: 'c', token: 'theirs' }, cardType: 'CREDIT' },
    });
  });

  it('a wallet is enrolled only if it was looked up, and has both a connection and its token', () => {
    const method = { ...wallet({}), type: 'WALLET_BOTH', vaultedToken: 't' };
    const by = { by: 'wallet', enrolled: undefined, cardType: undefined };
    expect(choose(method, { workflow: DIRECT })).toMatchObject(by);
    const stored = storedMethod('WALLET_BOTH');
    for (const lacking of [{ providerToken: undefined }, { connectionId: undefined }]) {
      const found = { vaultedToken: { ...stored, ...lacking } };
      expect(choose(method, { workflow: DIRECT }, found)).toMatchObject(by);
    }
  });

  it('a wallet that names no stored method needs none, although other stored objects were looked up', () => {
    const customer = { id: 'mine', payer: new Uint8Array() };
    expect(choose({ type: 'WALLET_BOTH' }, { workflow: DIRECT }, { customer })).toMatchObject({
      ...{ by: 'wallet', enrolled: undefined },
    });
  });

  it('a wallet whose payer is redirected is paid by the payer, on a page, even if the payer has enrolled it', () => {
    const page = { by: 'payer', show: 'page' };
    expect(choose({ type: 'WALLET' })).toEqual({ ...page, type: 'WALLET' });
    const enrolled = { type: 'WALLET_BOTH', vaultedToken: 't' };
    const found = { vaultedToken: storedMethod('WALLET_BOTH') };
    const redirect = { workflow: REDIRECT };
    expect(choose(enrolled, redirect, found)).toEqual({ ...page, type: 'WALLET_BOTH' });
    expect(refusal(() => choose(enrolled, redirect, {}))).toContain('VAULTED_TOKEN_NOT_FOUND');
  });

  it.each([
    ['its own customer', 'mine', { id: 'mine', payer: new Uint8Array() }],
    ['no customer', 'mine', undefined],
    ['a customer, if it belongs to nobody', undefined, { id: 'mine', payer: new Uint8Array() }],
  ])('a stored card may be used by %s', (_whom, customerId, customer) => {
    const vaultedToken = { ...storedMethod('CARD'), customerId };
    const method = { type: 'CARD', vaultedToken: 't', detail: {} };
    expect(choose(method, {}, { vaultedToken, customer })).toMatchObject({
      ...{ card: { source: 'stored', stored: vaultedToken, securityCode: '' } },
    });
  });

  it('the category of a method tells cards from wallets', () => {
    const methods = [card({ cardData }), { type: 'WALLET' }, { type: 'WALLET_BOTH' }];
    const chosen = methods.map((method, i) => choose(method, i === 2 ? { workflow: DIRECT } : {}));
    expect(chosen.map(categoryOf)).toEqual([CARD, WALLET, WALLET]);
  });

  it.each([
    ['CARD', undefined, 'VAULTED_TOKEN_NOT_FOUND payment_method.vaulted_token NOT_FOUND'],
    ['CARD', { type: 'WALLET_BOTH' }, 'INCORRECT_PAYMENT_METHOD_TYPE payment_method.type NOT_ALLOWED'],
    ['WALLET_BOTH', { type: 'CARD' }, 'INCORRECT_PAYMENT_METHOD_TYPE payment_method.type NOT_ALLOWED'],
    ['CARD', { customerId: 'other' }, 'INVALID_CUSTOMER_FOR_TOKEN payment_method.vaulted_token NOT_ALLOWED'],
  ])('a stored method of type %s that is %o is refused', (type, change, expected) => {
    const vaultedToken = change && { ...storedMethod(type), ...change };
    const found = { vaultedToken, customer: { id: 'mine', payer: new Uint8Array() } };
    const direct = type === 'CARD' ? {} : { workflow: DIRECT };
    expect(refusal(() => choose({ type, vaultedToken: 't' }, direct, found))).toBe(expected);
  });
});

describe('the workflow', () => {
  it('the workflow comes from the catalogue if there is only one', () => {
    expect(workflowOfMethod(choose({ type: 'WALLET' }))).toBe(REDIRECT);
  });

  it('the workflow is the requested one if there are two', () => {
    expect(workflowOfMethod(choose({ type: 'WALLET_BOTH' }, { workflow: DIRECT }))).toBe(DIRECT);
    expect(workflowOfMethod(choose({ type: 'WALLET_BOTH' }, { workflow: REDIRECT }))).toBe(REDIRECT);
  });

  it('the workflow is required if there are two', () => {
    expect(refusal(() => choose({ type: 'WALLET_BOTH' }))).toBe('INVALID_PARAMETERS workflow REQUIRED');
  });

  it('the workflow must be one of those offered, and the refusal names the only one', () => {
    const work = () => choose(card({ cardData }), { workflow: REDIRECT });
    expect(refusal(work)).toBe('INVALID_PARAMETERS workflow NOT_ALLOWED');
    expect(work).toThrow('must be DIRECT');
  });

  it.each<[MethodInit, Payment_Workflow]>([
    [card({ cardData }), DIRECT],
    [{ type: 'WALLET' }, REDIRECT],
    [{ type: 'WALLET_BOTH' }, REDIRECT],
    [{ type: 'WALLET_BOTH', vaultedToken: 't' }, DIRECT],
  ])('the workflow of a session’s payment by %o is %s', (method, expected) => {
    const inSession = { workflow: SDK_CHECKOUT, checkout: { session: 's' } };
    expect(workflowOfMethod(choose(method, inSession))).toBe(expected);
    const outside = refusal(() => choose(method, { workflow: SDK_CHECKOUT }));
    expect(outside).toBe('INVALID_PARAMETERS workflow NOT_ALLOWED');
  });

  it('a session’s payment by an enrolled wallet is refused if its type only redirects', () => {
    const inSession = { workflow: SDK_CHECKOUT, checkout: { session: 's' } };
    const refused = refusal(() => choose({ type: 'WALLET', vaultedToken: 't' }, inSession));
    expect(refused).toBe('INVALID_PARAMETERS workflow NOT_ALLOWED');
  });
});

describe('methods that are not offered', () => {
  it.each<[string, MethodInit | undefined, Init, string]>([
    ['an unknown type', { type: 'CASH' }, {}, 'payment_method.type'],
    ['a JavaScript property name as type', { type: 'constructor' }, {}, 'payment_method.type'],
    ['a missing method', undefined, {}, 'payment_method.type'],
    ['a method of another country', { type: 'WALLET' }, { country: 'BR' }, 'country'],
    ['a method of another currency', { type: 'WALLET' }, { amount: { currency: 'USD' } }, 'amount.currency'],
    ['a method of some currencies, without an amount', { type: 'WALLET' }, NO_AMOUNT, 'amount.currency'],
  ])('%s is refused as PAYMENT_METHOD_NOT_AVAILABLE', (_name, method, rest, field) => {
    expect(refusal(() => choose(method, rest))).toBe(`PAYMENT_METHOD_NOT_AVAILABLE ${field} NOT_ALLOWED`);
  });
});

describe('details that do not fit their type', () => {
  it.each<[string, MethodInit, string]>([
    [
      'a wallet with a card',
      { ...card({ cardData }), type: 'WALLET' },
      'payment_method.detail.card NOT_ALLOWED',
    ],
    [
      'a wallet with 3-D Secure of a card',
      { type: 'WALLET', detail: { kind: { case: 'card', value: { threeDSecure: {} } } } },
      'payment_method.detail.card NOT_ALLOWED',
    ],
    [
      'a wallet with a soft descriptor',
      { type: 'WALLET', detail: { kind: { case: 'card', value: { softDescriptor: 'SHOP' } } } },
      'payment_method.detail.card NOT_ALLOWED',
    ],
    [
      'a wallet with installments of a card without capture',
      { type: 'WALLET', detail: { kind: { case: 'card', value: { capture: false, installments: 2 } } } },
      'payment_method.detail.card NOT_ALLOWED',
    ],
    ['a wallet with a one-time token', { type: 'WALLET', token: 't' }, 'payment_method.token NOT_ALLOWED'],
    [
      'a wallet without capture in the card',
      { type: 'WALLET', detail: { kind: { case: 'card', value: { capture: false } } } },
      'payment_method.detail.card.capture NOT_ALLOWED',
    ],
    [
      'a wallet without capture in its own detail',
      wallet({ capture: false }),
      'payment_method.detail.wallet.capture NOT_ALLOWED',
    ],
    ['a wallet with verify', wallet({ verify: true }), 'payment_method.detail.wallet.verify NOT_ALLOWED'],
    [
      'a wallet with installments',
      wallet({ installments: 2 }),
      'payment_method.detail.wallet.installments NOT_ALLOWED',
    ],
    ['a card with a wallet', { ...wallet({}), type: 'CARD' }, 'payment_method.detail.wallet NOT_ALLOWED'],
    ['a card without data or a token', { type: 'CARD' }, 'payment_method.detail.card.card_data REQUIRED'],
    [
      'a card with data and a token',
      { ...card({ cardData }), vaultedToken: 't' },
      'payment_method.vaulted_token NOT_ALLOWED',
    ],
    [
      'a card with data and a one-time token',
      { ...card({ cardData }), token: 't' },
      'payment_method.token NOT_ALLOWED',
    ],
    ...[{ expirationMonth: 12 }, { expirationYear: 30 }, { holderName: 'ANA' }].map(
      (more): [string, MethodInit, string] => [
        `a stored card with ${Object.keys(more)}`,
        { ...card({ cardData: { securityCode: '737', ...more } }), vaultedToken: 't' },
        'payment_method.vaulted_token NOT_ALLOWED',
      ],
    ),
  ])('%s is refused with the name of the field', (_name, method, expected) => {
    expect(refusal(() => choose(method))).toBe(`INVALID_PARAMETERS ${expected}`);
  });

  it('a wallet may come with the default flags of a card', () => {
    const flags = { verify: false, capture: true, installments: 1 };
    const method: MethodInit = { type: 'WALLET', detail: { kind: { case: 'card', value: flags } } };
    expect(choose(method)).toMatchObject({ by: 'payer' });
  });
});

describe('the options of a card', () => {
  const options = (init: MessageInitShape<typeof CardInputSchema>) =>
    cardOptions(create(CardInputSchema, init));

  it('a verification leaves nothing to capture', () => {
    expect(options({ capture: false })).toMatchObject({ verify: false, capture: false });
    expect(options({ capture: false, verify: true })).toMatchObject({ verify: true, capture: true });
    expect(options({ softDescriptor: 'SHOP' }).softDescriptor).toBe('SHOP');
  });

  it.each([
    { version: '2.2.0' },
    { electronicCommerceIndicator: '05' },
    { cryptogram: 'AAAA' },
    { transactionId: 'xid' },
    { directoryServerTransactionId: 'ds' },
  ])('%o alone is a result of 3-D Secure, and the other fields stay absent', (threeDSecure) => {
    const given = options({ threeDSecure }).threeDSecure;
    expect(given).toEqual(create(ThreeDSecureSchema, threeDSecure));
    expect(options({ threeDSecure: { threeDSecureSetupId: 'setup' } }).threeDSecure).toBeUndefined();
  });

  it.each([
    { reason: 'SUBSCRIPTION' },
    { usage: 'FIRST' },
    { subscriptionAgreementId: 'agreement' },
    { networkTransactionId: 'scheme' },
  ])('%o alone asks for stored credentials, and the other fields stay absent', (storedCredentials) => {
    const given = options({ storedCredentials }).storedCredentials;
    expect(given).toEqual(create(StoredCredentialsSchema, storedCredentials));
  });

  it('empty stored credentials and 3-D Secure ask for nothing, as when they are absent', () => {
    expect(options({ storedCredentials: {}, threeDSecure: {} })).toEqual(options({}));
    expect(options({})).toEqual(cardOptions(undefined));
  });
});
