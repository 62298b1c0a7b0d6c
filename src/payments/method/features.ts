import type { DescField } from '@bufbuild/protobuf';
import { isReflectMessage, type ReflectMessage, reflect } from '@bufbuild/protobuf/reflect';
import type { ConnectionConfig, PaymentMethodType } from '#gen/payments/v1/catalogue_pb.js';
import { Payment_Workflow, Transaction_Category } from '#gen/payments/v1/payment_pb.js';
import {
  type CreatePaymentRequest,
  CreatePaymentRequestSchema,
} from '#gen/payments/v1/payment_service_pb.js';
import {
  type CardOptions,
  chargesCard,
  isLocalMethod,
  type LocalMethodOfPayer,
  type Method,
} from '#src/connectors/port/attempt.ts';
import {
  type Capabilities,
  type LocalMethod,
  type MethodKind,
  PAYERS_BANK,
} from '#src/connectors/port/capabilities.ts';
import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import { formatMoney, parseMoney } from '#src/money.ts';
import { describeFields, type FieldError, fieldRefusal, ServiceError } from '#src/service-error.ts';
import { type CardSource, hasSecurityCode } from './card-source.ts';
import { expiryOf, isLocal, rangeOf } from './local-method.ts';

/** A feature that a payment needs and a connection lacks. */
export type Lack = {
  /** Path of the field that requests the feature. */
  readonly field: string;
  /** Name of the feature, in the plural. */
  readonly what: string;
  /** true: the field is absent, and the connection would offer the feature if it were sent. */
  readonly isMissing?: true;
  /** The values that the connection offers, in words, if the field's own value is outside. */
  readonly range?: string;
  /** true: another connection has enrolled the wallet, and no other can charge it. */
  readonly isElsewhere?: true;
  /** true: the connection takes no payments of the account, whatever they are. */
  readonly isClosed?: true;
};

const SETUPS = '3-D Secure setups';
const RESULTS = 'results of 3-D Secure from elsewhere';

/** A feature of card payments that a request may ask for. */
type Feature = {
  /** Path of the field that asks for it, within the method's detail. */
  readonly field: string;
  /** Its name, in the plural. */
  readonly what: string;
  readonly isAsked: (options: CardOptions) => boolean;
  /** Returns true if a connection offers it. */
  readonly isOffered: (can: Capabilities) => boolean;
  /** Returns the paths of the fields that a connection that offers it needs too, and the request lacks. */
  readonly missing?: (
    can: Capabilities,
    options: CardOptions,
    request: CreatePaymentRequest,
  ) => readonly string[];
  /** true: a payer must not ask for it, since it decides when the money arrives or who is liable. */
  readonly isMerchants: boolean;
};

/** Every feature of card payments, in the order in which refusals name them. */
const FEATURES: readonly Feature[] = [
  {
    ...{ field: 'verify', what: 'verifications', isMerchants: true },
    isAsked: ({ verify }) => verify,
    isOffered: ({ verify }) => verify,
  },
  {
    ...{ field: 'capture', what: 'authorizations without capture', isMerchants: true },
    isAsked: ({ capture }) => !capture,
    isOffered: ({ authorization }) => authorization,
  },
  {
    ...{ field: 'installments', what: 'installments', isMerchants: false },
    isAsked: ({ installments }) => installments > 1,
    isOffered: ({ installments }) => installments,
  },
  {
    ...{ field: 'three_d_secure.three_d_secure_setup_id', what: SETUPS, isMerchants: false },
    isAsked: ({ threeDSecureSetupId }) => threeDSecureSetupId !== undefined,
    isOffered: ({ challenge }) => challenge,
    missing: ({ missingForChallenge }, _options, { customerPayer }) =>
      within('customer_payer.browser_info', missingForChallenge?.(customerPayer?.browserInfo)),
  },
  {
    ...{ field: 'three_d_secure', what: RESULTS, isMerchants: true },
    isAsked: ({ threeDSecure }) => threeDSecure !== undefined,
    isOffered: ({ externalThreeDSecure }) => externalThreeDSecure,
    missing: ({ missingForResults }, { threeDSecure }) =>
      within('payment_method.detail.card.three_d_secure', threeDSecure && missingForResults?.(threeDSecure)),
  },
  {
    ...{ field: 'stored_credentials', what: 'stored credentials', isMerchants: true },
    isAsked: ({ storedCredentials }) => storedCredentials !== undefined,
    isOffered: ({ storedCredentials }) => storedCredentials,
  },
  {
    // A connection that cannot show it makes the payment without it.
    ...{ field: 'soft_descriptor', what: 'soft descriptors', isMerchants: true },
    isAsked: ({ softDescriptor }) => softDescriptor !== '',
    isOffered: () => true,
  },
];

function within(path: string, names: readonly string[] = []): string[] {
  return names.map((name) => `${path}.${name}`);
}

/** Lists the fields, within the method's detail, that ask for features. */
export function featuresAsked(options: CardOptions): string[] {
  return FEATURES.filter(({ isAsked }) => isAsked(options)).map(({ field }) => field);
}

/** Returns the field that asks for a feature that only merchants may ask for; undefined if there is none. */
export function merchantsFeature(options: CardOptions): string | undefined {
  return FEATURES.find(({ isAsked, isMerchants }) => isMerchants && isAsked(options))?.field;
}

const METHODS = {
  CARD: 'card payments',
  PAYER_PAGE: 'redirects to wallets',
  WALLET: 'payments with enrolled wallets',
} as const satisfies Partial<Record<MethodKind, string>>;

/**
 * Lists what a payment needs and a connection lacks: its kind of method, and features.
 *
 * @param nowMs when the payment is made, in milliseconds since the epoch.
 */
export function lacksOf(
  method: Method<CardSource>,
  request: CreatePaymentRequest,
  can: Capabilities,
  nowMs: number,
): Lack[] {
  if (isLocalMethod(method)) return lacksOfLocal(method, request, can, nowMs);
  if (isWithoutToken(method, request, can)) {
    const field = 'payment_method.detail.wallet.payment_token';
    return [{ field, what: `${method.type} payments`, isMissing: true }];
  }
  const lacks = lacksOfKind(method, can);
  if (!chargesCard(method)) return lacks;
  const detail = `payment_method.detail.${method.by === 'card' ? 'card' : 'wallet'}`;
  const asked = FEATURES.filter(({ isAsked }) => isAsked(method));
  const unoffered = asked.filter(({ isOffered }) => !isOffered(can));
  const incomplete = asked.filter(({ isOffered }) => isOffered(can));
  return [
    ...lacks,
    ...unoffered.map(({ field, what }) => ({ field: `${detail}.${field}`, what })),
    ...(lacks.length === 0 ? missingForCard(method, request, can) : []),
    ...incomplete.flatMap(({ missing, what }) =>
      (missing?.(can, method, request) ?? []).map((field): Lack => ({ field, what, isMissing: true })),
    ),
  ];
}

/** Lists the fields that a connection needs for every card, and that a request lacks. */
function missingForCard(
  method: Method<CardSource>,
  { customerPayer: payer }: CreatePaymentRequest,
  { missingForCards }: Capabilities,
): Lack[] {
  const hasCode = method.by !== 'card' || hasSecurityCode(method.card);
  const missing = missingForCards?.({ payer, hasSecurityCode: hasCode }) ?? [];
  return missing.map((field) => ({ field, what: METHODS.CARD, isMissing: true }));
}

/** Returns true for a wallet that pays with a token, of which the request has none, nor a stored wallet. */
function isWithoutToken(
  { by, type }: Method<unknown>,
  { paymentMethod }: CreatePaymentRequest,
  { walletTokens }: Capabilities,
): boolean {
  return by === 'wallet' && !paymentMethod?.vaultedToken && walletTokens.includes(type);
}

/** Returns true if a connection offers a payment method type with a workflow, whatever else a payment needs. */
export function offersType(
  { type, category }: Pick<PaymentMethodType, 'type' | 'category'>,
  workflow: Payment_Workflow,
  can: Capabilities,
): boolean {
  if (isLocal(category)) return Object.hasOwn(can.localMethods, type);
  const isDirect = workflow === Payment_Workflow.DIRECT;
  const ofWallet = isDirect ? (['wallet', 'wallet_token'] as const) : (['payer'] as const);
  const ways = category === Transaction_Category.WALLET ? ofWallet : (['card'] as const);
  return ways.some((by) => lacksOfKind({ by, type }, can).length === 0);
}

function lacksOfKind(method: Pick<Method<unknown>, 'by' | 'type'>, can: Capabilities): Lack[] {
  const field = 'payment_method.type';
  if (method.by === 'wallet_token') {
    return can.walletTokens.includes(method.type) ? [] : [{ field, what: `tokens of ${method.type}` }];
  }
  const kind = method.by === 'card' ? 'CARD' : method.by === 'wallet' ? 'WALLET' : 'PAYER_PAGE';
  return can.methods.includes(kind) ? [] : [{ field, what: METHODS[kind] }];
}

/**
 * Lists what a payment with a local method lacks at a connection: the method itself, its country, currency, amount or
 * expiry, and the data of the payer that the provider needs.
 */
function lacksOfLocal(
  { type, category, wantedExpiryMs, bankId }: LocalMethodOfPayer,
  request: CreatePaymentRequest,
  { localMethods }: Capabilities,
  nowMs: number,
): Lack[] {
  const what = `${type} payments`;
  const local = localMethods[type];
  if (!local) return [{ field: 'payment_method.type', what }];
  const isOutside: readonly (readonly [field: string, isOutside: boolean, range: string])[] = [
    ['country', !local.countries.includes(request.country), oneOf(local.countries)],
    ['amount.currency', !local.currencies.includes(request.amount?.currency ?? ''), oneOf(local.currencies)],
    ['amount.value', ...amountRange(local, request)],
    [
      `payment_method.detail.${category.toLowerCase()}.expires_at`,
      wantedExpiryMs !== undefined && expiryOf(local, wantedExpiryMs, nowMs) === undefined,
      rangeOf(local),
    ],
    [
      PAYERS_BANK,
      bankId !== '' && local.banks !== undefined && !local.banks.includes(bankId),
      oneOf(local.banks ?? []),
    ],
    ['customer_payer.document.document_type', hasOtherDocument(local, request), oneOf(local.documents ?? [])],
  ];
  return [
    ...isOutside.filter(([, is]) => is).map(([field, , range]) => ({ field, what, range })),
    ...local.needs
      .filter((path) => !isSent(request, path))
      .map((field): Lack => ({ field, what, isMissing: true })),
  ];
}

function amountRange({ least, greatest }: LocalMethod, { amount }: CreatePaymentRequest): [boolean, string] {
  const money = amount && parseMoney(amount.value?.value ?? '', amount.currency);
  if (!money) return [false, ''];
  const inWords = (minorUnits: bigint) => formatMoney({ ...money, minorUnits });
  const isLess = least !== undefined && money.minorUnits < least;
  if (isLess) return [true, `at least ${inWords(least)}`];
  const isMore = greatest !== undefined && money.minorUnits > greatest;
  return isMore ? [true, `at most ${inWords(greatest)}`] : [false, ''];
}

function hasOtherDocument({ documents }: LocalMethod, { customerPayer }: CreatePaymentRequest): boolean {
  const type = customerPayer?.document?.documentType ?? '';
  return documents !== undefined && type !== '' && !documents.includes(type.toUpperCase());
}

function oneOf(names: readonly string[]): string {
  return names.length === 1 ? `${names[0]}` : `one of ${names.join(', ')}`;
}

/** Returns true if a request has a value at a path of .proto names. */
function isSent(request: CreatePaymentRequest, path: string): boolean {
  let message: ReflectMessage | undefined = reflect(CreatePaymentRequestSchema, request);
  const names = path.split('.');
  for (const [depth, name] of names.entries()) {
    const field: DescField | undefined = message?.fields.find((one) => one.name === name);
    if (!message || !field || !message.isSet(field)) return false;
    const value: unknown = message.get(field);
    if (depth === names.length - 1) return value !== '';
    message = isReflectMessage(value) ? value : undefined;
  }
  return false;
}

/** The open connections, by id. */
export type Capable = ReadonlyMap<string, Pick<ProviderConnection, 'capabilities'>>;

/**
 * Returns a function that lists what a connection of the catalogue lacks for a payment; nothing if it is not open. A
 * wallet can be charged only by the connection that enrolled it.
 */
export function lacksAt(
  connections: Capable,
  method: Method<CardSource>,
  request: CreatePaymentRequest,
  nowMs: number,
): (connection: ConnectionConfig) => Lack[] {
  const enrolledAt = method.by === 'wallet' ? method.enrolled?.at : undefined;
  return ({ id, retired, accountIds }) => {
    if (retired) return [RETIRED];
    if (accountIds.length > 0 && !accountIds.includes(request.accountId)) return [OF_OTHERS];
    if (enrolledAt !== undefined && enrolledAt !== id) return [ELSEWHERE];
    const connection = connections.get(id);
    return connection ? lacksOf(method, request, connection.capabilities, nowMs) : [];
  };
}

const RETIRED: Lack = { field: 'payment_method.type', what: 'payments, since it is retired', isClosed: true };
const OF_OTHERS: Lack = { field: 'account_id', what: 'payments of this account', isClosed: true };
const ELSEWHERE: Lack = {
  field: 'payment_method.vaulted_token',
  what: 'this wallet, which is enrolled elsewhere',
  isElsewhere: true,
};

/** Describes what a connection lacks, in a few words. */
export function describeLack({ field, what, isMissing, range }: Lack): string {
  if (range !== undefined) return `${what} with another ${field} than ${range}`;
  return isMissing ? `${what} without ${field}` : what;
}

/**
 * Returns the refusal of a payment with a local method that no target of its route can handle: what the first listed
 * target that offers the method lacks, so that the refusal does not depend on how the route chooses.
 *
 * @param byTarget what each target lacks, in the route's order.
 */
export function localNotOffered(byTarget: readonly (readonly Lack[])[]): ServiceError {
  const isOffering = (lacks: readonly Lack[]) =>
    lacks.every(({ isMissing, range }) => isMissing || range !== undefined);
  const open = byTarget.filter((lacks) => lacks.every(({ isClosed }) => !isClosed));
  const lacks = open.find(isOffering) ?? open[0];
  if (!lacks) return noneOpen();
  const fields = lacks.map(refusedField);
  const isRange = lacks.every(({ range }) => range !== undefined);
  const reason = isRange ? 'INVALID_PARAMETERS' : 'OPERATION_NOT_SUPPORTED';
  return new ServiceError(reason, `${describeFields(fields)}; nothing was sent`, { fields });
}

/** Returns the refusal of a payment whose route has only connections that take no payments of its account. */
function noneOpen(): ServiceError {
  const message =
    "is not accepted by any connection of the payment's route for this account; nothing was sent";
  return fieldRefusal('PAYMENT_METHOD_NOT_AVAILABLE', 'payment_method.type', 'NOT_ALLOWED', message);
}

function refusedField({ field, what, isMissing, range }: Lack): FieldError {
  if (range !== undefined) {
    const code = field.endsWith('.expires_at') || field === 'amount.value' ? 'OUT_OF_RANGE' : 'NOT_ALLOWED';
    return { field, code, message: `must be ${range} for ${what}` };
  }
  return isMissing
    ? {
        field,
        code: 'REQUIRED',
        message: `is required: no connection of the payment's route offers ${what} without it`,
      }
    : {
        field,
        code: 'NOT_SUPPORTED',
        message: `requests ${what}, which no connection of the payment's route offers together with the rest of the request`,
      };
}

/** Returns the refusal of a payment that no connection of its route can handle. */
export function notOffered(lacks: readonly Lack[]): ServiceError {
  const open = lacks.filter(({ isClosed }) => !isClosed);
  if (open.length === 0) return noneOpen();
  const here = open.filter(({ isElsewhere }) => !isElsewhere);
  if (here.length === 0) {
    const message = "was enrolled at a connection outside this payment's route; nothing was sent";
    return fieldRefusal('OPERATION_NOT_SUPPORTED', ELSEWHERE.field, 'NOT_SUPPORTED', message);
  }
  const byField = new Map(here.map((lack) => [lack.field, lack]));
  const fields = [...byField.values()].map(refusedField);
  return new ServiceError('OPERATION_NOT_SUPPORTED', `${describeFields(fields)}; nothing was sent`, {
    fields,
  });
}
