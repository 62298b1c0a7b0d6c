import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { describe, expect, it } from 'vitest';
import {
  ConnectionConfigSchema,
  type PaymentMethodType,
  PaymentMethodTypeSchema,
} from '#gen/payments/v1/catalogue_pb.js';
import { Payment_Workflow, Transaction_Category } from '#gen/payments/v1/payment_pb.js';
import { CreatePaymentRequestSchema } from '#gen/payments/v1/payment_service_pb.js';
import { isLocalMethod } from '#src/connectors/port/attempt.ts';
import { CARDS_ONLY, type LocalMethod } from '#src/connectors/port/capabilities.ts';
import { describeLack, type Lack, lacksAt, localNotOffered } from '#src/payments/method/features.ts';
import { capabilitiesFor, expiryOf, rangeOf } from '#src/payments/method/local-method.ts';
import { categoryOf, readMethod, workflowOfMethod } from '#src/payments/method/payment-method.ts';
import { ServiceError } from '#src/service-error.ts';

const { BANK_TRANSFER, TICKET, WALLET } = Transaction_Category;
const { DIRECT, REDIRECT } = Payment_Workflow;
const types = new Map<string, PaymentMethodType>(
  [
    { type: 'PIX', category: BANK_TRANSFER, workflows: [REDIRECT] },
    { type: 'BOLETO', category: TICKET, workflows: [REDIRECT] },
    { type: 'GOOGLE_PAY', category: WALLET, workflows: [DIRECT] },
    { type: 'WALLET', category: WALLET, workflows: [DIRECT, REDIRECT] },
    { type: 'CARD', category: Transaction_Category.CARD, workflows: [DIRECT] },
  ].map((init) => [init.type, create(PaymentMethodTypeSchema, init)]),
);

type Init = Extract<MessageInitShape<typeof CreatePaymentRequestSchema>, { $typeName?: never }>;
type Kind = NonNullable<NonNullable<Init['paymentMethod']>['detail']>['kind'];
const NOW_MS = Date.parse('2026-03-10T15:00:00Z');
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const requestOf = (type: string, kind?: Kind, rest: Init = {}) =>
  create(CreatePaymentRequestSchema, {
    ...{ country: 'BR', amount: { currency: 'BRL', value: { value: '52.00' } } },
    ...rest,
    paymentMethod: {
      type,
      ...rest.paymentMethod,
      ...(kind && { detail: { kind } }),
    } as Init['paymentMethod'] & {},
  });
const read = (type: string, kind?: Kind, rest: Init = {}) =>
  readMethod(requestOf(type, kind, rest), undefined, types);
const refusal = (act: () => unknown): ServiceError => {
  try {
    act();
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw error;
  }
  throw new Error('was not refused');
};
const transfer = (value: object) => ({ case: 'bankTransfer', value }) as Kind;
const ticket = (value: object) => ({ case: 'ticket', value }) as Kind;
const wallet = (value: object) => ({ case: 'wallet', value }) as Kind;

describe('a local method of a request', () => {
  it('needs no detail, and its payer is redirected', () => {
    const method = read('PIX');
    expect(method).toEqual({
      ...{ by: 'payer', type: 'PIX', show: 'instructions', category: 'BANK_TRANSFER' },
      ...{ wantedExpiryMs: undefined, bankId: '', accountType: undefined },
    });
    expect([categoryOf(method), workflowOfMethod(method)]).toEqual([BANK_TRANSFER, REDIRECT]);
    expect(categoryOf(read('BOLETO'))).toBe(TICKET);
  });

  it('has the expiry, the bank and the kind of account that the request asks for', () => {
    const expiresAt = timestampFromMs(NOW_MS + 5);
    expect(read('PIX', transfer({ expiresAt, bankId: '1007', accountType: 'SAVINGS' }))).toMatchObject({
      ...{ wantedExpiryMs: NOW_MS + 5, bankId: '1007', accountType: 'SAVINGS' },
    });
    expect(read('BOLETO', ticket({ expiresAt }))).toMatchObject({ wantedExpiryMs: NOW_MS + 5, bankId: '' });
  });

  it.each<[string, string, Kind | undefined, Init, string]>([
    ['a card', 'PIX', { case: 'card', value: {} } as Kind, {}, 'payment_method.detail.card'],
    ['a wallet', 'PIX', wallet({}), {}, 'payment_method.detail.wallet'],
    ['a ticket’s detail', 'PIX', ticket({}), {}, 'payment_method.detail.ticket'],
    ['a bank transfer’s detail', 'BOLETO', transfer({}), {}, 'payment_method.detail.bank_transfer'],
    ['a token', 'PIX', undefined, { paymentMethod: { token: 't' } }, 'payment_method.token'],
    [
      'a stored method',
      'PIX',
      undefined,
      { paymentMethod: { vaultedToken: 't' } },
      'payment_method.vaulted_token',
    ],
    [
      'a wish to store it',
      'PIX',
      undefined,
      { paymentMethod: { vaultOnSuccess: true } },
      'payment_method.vault_on_success',
    ],
  ])('is refused with %s', (_what, type, kind, rest, field) => {
    const { reason, fields } = refusal(() => read(type, kind, rest));
    expect([reason, fields]).toMatchObject(['INVALID_PARAMETERS', [{ field, code: 'NOT_ALLOWED' }]]);
  });

  it.each([
    ['CARD', transfer({}), 'payment_method.detail.bank_transfer'],
    ['WALLET', ticket({}), 'payment_method.detail.ticket'],
  ])('%s takes no detail of a local method', (type, kind, field) => {
    const rest = { workflow: type === 'WALLET' ? REDIRECT : DIRECT };
    expect(refusal(() => read(type, kind, rest)).fields).toMatchObject([{ field, code: 'NOT_ALLOWED' }]);
  });
});

describe('the token of a wallet', () => {
  const paymentToken = '{"signature":"sandbox"}';

  it('charges the card behind it, with the options of cards', () => {
    const method = read(
      'GOOGLE_PAY',
      wallet({ paymentToken, capture: false, softDescriptor: 'SHOP', cardData: { lfd: '1111' } }),
    );
    expect(method).toMatchObject({
      ...{ by: 'wallet_token', type: 'GOOGLE_PAY', lastFour: '1111' },
      ...{
        capture: false,
        verify: false,
        installments: 1,
        softDescriptor: 'SHOP',
        storedCredentials: undefined,
      },
    });
    expect(method.by === 'wallet_token' && method.token.reveal()).toBe(paymentToken);
    expect(JSON.stringify(method)).not.toContain('signature');
    expect([categoryOf(method), workflowOfMethod(method)]).toEqual([WALLET, DIRECT]);
    expect(read('GOOGLE_PAY', wallet({ paymentToken }))).toMatchObject({ capture: true, lastFour: '' });
  });

  it.each<[string, Kind, Init, string, string]>([
    ['no JSON', wallet({ paymentToken: 'tok_1' }), {}, 'detail.wallet.payment_token', 'INVALID_FORMAT'],
    ['no object', wallet({ paymentToken: '["a"]' }), {}, 'detail.wallet.payment_token', 'INVALID_FORMAT'],
    [
      'beside a stored method',
      wallet({ paymentToken }),
      { paymentMethod: { vaultedToken: 't' } },
      'detail.wallet.payment_token',
      'NOT_ALLOWED',
    ],
    [
      'to be stored',
      wallet({ paymentToken }),
      { paymentMethod: { vaultOnSuccess: true } },
      'vault_on_success',
      'NOT_ALLOWED',
    ],
  ])('is refused if it is %s', (_what, kind, rest, field, code) => {
    const { fields, message } = refusal(() => read('GOOGLE_PAY', kind, rest));
    expect(fields).toMatchObject([{ field: `payment_method.${field}`, code }]);
    expect(message).not.toContain('tok_1');
  });

  it.each([
    ['payment_token', { paymentToken }],
    ['soft_descriptor', { softDescriptor: 'SHOP' }],
    ['stored_credentials', { storedCredentials: { reason: 'CARD_ON_FILE' } }],
  ])('a wallet that redirects its payer takes no %s', (name, value) => {
    const { fields } = refusal(() => read('WALLET', wallet(value), { workflow: REDIRECT }));
    expect(fields).toMatchObject([{ field: `payment_method.detail.wallet.${name}`, code: 'NOT_ALLOWED' }]);
  });
});

const PIX: LocalMethod = {
  ...{ countries: ['BR'], currencies: ['BRL'], needs: [], refunds: 'several', close: true },
  expiry: { default: 1_440, least: 30, greatest: 43_200 },
};
const BOLETO: LocalMethod = {
  ...{ countries: ['BR'], currencies: ['BRL'], refunds: 'none', close: false },
  needs: [
    'customer_payer.first_name',
    'customer_payer.document.document_number',
    'customer_payer.billing_address.zip_code',
  ],
  documents: ['CPF', 'CNPJ'],
  ...{ least: 500n, greatest: 4_999_999n },
  expiry: { default: 4_320, least: 60, greatest: 86_400 },
  expiresWithDayIn: 'America/Sao_Paulo',
};

describe('the expiry of a code', () => {
  it.each([
    ['by default', undefined, NOW_MS + DAY_MS],
    ['as asked', NOW_MS + 2 * HOUR_MS, NOW_MS + 2 * HOUR_MS],
    ['at the least', NOW_MS + 30 * 60_000, NOW_MS + 30 * 60_000],
    ['too soon', NOW_MS + 30 * 60_000 - 1, undefined],
    ['at the greatest', NOW_MS + 30 * DAY_MS, NOW_MS + 30 * DAY_MS],
    ['too late', NOW_MS + 30 * DAY_MS + 1, undefined],
    ['in the past', NOW_MS - 1, undefined],
  ])('%s', (_what, wantedMs, expected) => {
    expect(expiryOf(PIX, wantedMs, NOW_MS)).toBe(expected);
  });

  it.each([
    ['by default, the last day counts whole', undefined, '2026-03-13T23:59:59-03:00'],
    [
      'the last end of a day before the wanted time',
      '2026-03-12T12:00:00-03:00',
      '2026-03-11T23:59:59-03:00',
    ],
    ['the end of a day itself', '2026-03-12T23:59:59-03:00', '2026-03-12T23:59:59-03:00'],
    ['a wanted time before the first end of a day', '2026-03-10T23:00:00-03:00', undefined],
    ['a wanted time after the range', '2026-05-10T00:00:00-03:00', undefined],
  ])('where the provider counts days: %s', (_what, wanted, expected) => {
    const ms = expiryOf(BOLETO, wanted === undefined ? undefined : Date.parse(wanted), NOW_MS);
    expect(ms).toBe(expected && Date.parse(expected));
  });

  it('where the provider counts days, the least and the greatest time are within the range', () => {
    const end = Date.parse('2026-03-12T23:59:59-03:00');
    const [least, greatest] = [BOLETO.expiry.least * 60_000, BOLETO.expiry.greatest * 60_000];
    expect([0, 1].map((later) => expiryOf(BOLETO, end, end - least + later))).toEqual([end, undefined]);
    expect([0, 1].map((later) => expiryOf(BOLETO, end + later, end - greatest))).toEqual([end, undefined]);
  });

  it('counts the days of a zone whose clocks change', () => {
    const changing = { ...BOLETO, expiresWithDayIn: 'America/Santiago' };
    // On 2026-04-05 at midnight, Chile's clocks go back an hour.
    const ms = expiryOf(
      changing,
      Date.parse('2026-04-05T12:00:00-04:00'),
      Date.parse('2026-04-01T12:00:00-03:00'),
    );
    expect(ms).toBe(Date.parse('2026-04-04T23:59:59-04:00'));
  });

  it('is described by its range', () => {
    expect(rangeOf(PIX)).toBe('from 30 minutes to 30 days from now');
    expect(rangeOf(BOLETO)).toBe(
      'from 1 hour to 60 days from now, and not before the end of a day in America/Sao_Paulo',
    );
  });
});

describe('a connection for a local method', () => {
  const can = { ...CARDS_ONLY, localMethods: { PIX, BOLETO } };
  const lacksOf = (type: string, kind?: Kind, rest: Init = {}, capabilities = can): Lack[] => {
    const request = requestOf(type, kind, rest);
    const method = readMethod(request, undefined, types);
    const at = lacksAt(new Map([['one', { capabilities }]]), method, request, NOW_MS);
    return at(create(ConnectionConfigSchema, { id: 'one' }));
  };
  const PAYER = {
    customerPayer: {
      firstName: 'Ana',
      document: { documentType: 'cpf', documentNumber: '39053344705' },
      billingAddress: { zipCode: '01310-100' },
    },
  };

  it('lacks nothing if it offers the method and the request has what it needs', () => {
    expect([lacksOf('PIX'), lacksOf('BOLETO', undefined, PAYER)]).toEqual([[], []]);
  });

  it('lacks a method that it does not offer', () => {
    expect(lacksOf('PIX', undefined, {}, { ...can, localMethods: {} as typeof can.localMethods })).toEqual([
      { field: 'payment_method.type', what: 'PIX payments' },
    ]);
  });

  it.each<[string, string, Kind | undefined, Init, string]>([
    ['country', 'PIX', undefined, { country: 'MX' }, 'BR'],
    ['amount.currency', 'PIX', undefined, { amount: { currency: 'USD', value: { value: '5' } } }, 'BRL'],
    [
      'amount.value',
      'BOLETO',
      undefined,
      { ...PAYER, amount: { currency: 'BRL', value: { value: '4.99' } } },
      'at least 5.00',
    ],
    [
      'amount.value',
      'BOLETO',
      undefined,
      { ...PAYER, amount: { currency: 'BRL', value: { value: '50000' } } },
      'at most 49999.99',
    ],
    [
      'payment_method.detail.bank_transfer.expires_at',
      'PIX',
      transfer({ expiresAt: timestampFromMs(NOW_MS) }),
      {},
      'from 30 minutes to 30 days from now',
    ],
    [
      'customer_payer.document.document_type',
      'BOLETO',
      undefined,
      { customerPayer: { ...PAYER.customerPayer, document: { documentType: 'CC', documentNumber: '1' } } },
      'one of CPF, CNPJ',
    ],
  ])('lacks another %s than its own, and says the range', (field, type, kind, rest, range) => {
    const lacks = lacksOf(type, kind, rest);
    expect(lacks).toEqual([{ field, what: `${type} payments`, range }]);
    expect(lacks.map(describeLack)).toEqual([`${type} payments with another ${field} than ${range}`]);
    expect(localNotOffered([lacks])).toMatchObject({
      reason: 'INVALID_PARAMETERS',
      fields: [{ field, message: `must be ${range} for ${type} payments` }],
    });
  });

  it('lacks a bank that its provider does not have', () => {
    const banks = { ...can, localMethods: { ...can.localMethods, PIX: { ...PIX, banks: ['1', '2'] } } };
    const from = (bankId: string) => lacksOf('PIX', transfer({ bankId }), {}, banks);
    expect([from(''), from('2')]).toEqual([[], []]);
    const field = 'payment_method.detail.bank_transfer.bank_id';
    expect(from('3')).toEqual([{ field, what: 'PIX payments', range: 'one of 1, 2' }]);
    expect(lacksOf('PIX', transfer({ bankId: '3' }))).toEqual([]);
  });

  it('lacks every field that its provider needs of the payer', () => {
    const lacks = lacksOf('BOLETO', undefined, {
      customerPayer: { firstName: '', document: { documentNumber: '1' } },
    });
    expect(lacks.map(({ field, isMissing }) => [field, isMissing])).toEqual([
      ['customer_payer.first_name', true],
      ['customer_payer.billing_address.zip_code', true],
    ]);
    expect(localNotOffered([lacks])).toMatchObject({
      reason: 'OPERATION_NOT_SUPPORTED',
      fields: [{ code: 'REQUIRED' }, { code: 'REQUIRED' }],
    });
  });

  it('is refused for what the first listed target that offers the method lacks', () => {
    const lacks = lacksOf('BOLETO');
    const other: Lack[] = [{ field: 'payment_method.type', what: 'BOLETO payments' }];
    const fieldsOf = (byTarget: Lack[][]) => localNotOffered(byTarget).fields.map(({ field }) => field);
    expect(fieldsOf([other, lacks, [{ field: 'country', what: '', isMissing: true }]])).toEqual(
      lacks.map(({ field }) => field),
    );
    expect(fieldsOf([other])).toEqual(['payment_method.type']);
  });

  it('refunds and cancels as the method allows', () => {
    const general = { ...can, refunds: 'one' as const, close: true };
    expect(capabilitiesFor(general, { type: 'BOLETO', isLocal: false })).toBe(general);
    expect(capabilitiesFor(general, { type: 'BOLETO', isLocal: true })).toMatchObject({
      refunds: 'none',
      close: false,
    });
    expect(capabilitiesFor(general, { type: 'PIX', isLocal: true })).toMatchObject({
      refunds: 'several',
      close: true,
    });
    expect(capabilitiesFor(general, { type: 'GONE', isLocal: true })).toMatchObject({
      refunds: 'none',
      close: false,
    });
    const limited = { ...general, localMethods: { PIX: { ...PIX, refundableDays: 90 } } };
    expect(capabilitiesFor(limited, { type: 'PIX', isLocal: true }).refundableDays).toBe(90);
  });

  it('is told from a wallet', () => {
    expect([read('PIX'), read('WALLET', undefined, { workflow: REDIRECT })].map(isLocalMethod)).toEqual([
      true,
      false,
    ]);
  });
});
