import type { ConnectionConfig } from '#gen/payments/config/catalogue_pb.js';
import type { CreatePaymentRequest } from '#gen/payments/v1/payment_service_pb.js';
import { type CardOptions, kindOf, type Method } from '#src/connectors/port/attempt.ts';
import type { Capabilities, MethodKind } from '#src/connectors/port/capabilities.ts';
import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import { describeFields, fieldRefusal, ServiceError } from '#src/service-error.ts';

/** A feature that a payment needs and a connection lacks. */
export type Lack = {
  /** Path of the field that requests the feature. */
  readonly field: string;
  /** Name of the feature, in the plural. */
  readonly what: string;
  /** true: the field is absent, and the connection would offer the feature if it were sent. */
  readonly isMissing?: true;
  /** true: another connection has enrolled the wallet, and no other can charge it. */
  readonly isElsewhere?: true;
};

const CARD = 'payment_method.detail.card';
const SETUPS = '3-D Secure setups';
const RESULTS = 'results of 3-D Secure from elsewhere';

/** A feature of card payments that a request may ask for. */
type Feature = {
  /** Path of the field that asks for it, within payment_method.detail.card. */
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
      within(`${CARD}.three_d_secure`, threeDSecure && missingForResults?.(threeDSecure)),
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

/** Lists the fields, within payment_method.detail.card, that ask for features. */
export function featuresAsked(options: CardOptions): string[] {
  return FEATURES.filter(({ isAsked }) => isAsked(options)).map(({ field }) => field);
}

/** Returns the field that asks for a feature that only merchants may ask for; undefined if there is none. */
export function merchantsFeature(options: CardOptions): string | undefined {
  return FEATURES.find(({ isAsked, isMerchants }) => isMerchants && isAsked(options))?.field;
}

const METHODS: Readonly<Record<MethodKind, string>> = {
  CARD: 'card payments',
  PAYER_PAGE: 'redirects to wallets',
  WALLET: 'payments with enrolled wallets',
};

/** Lists what a payment needs and a connection lacks: its kind of method, and features. */
export function lacksOf(method: Method<unknown>, request: CreatePaymentRequest, can: Capabilities): Lack[] {
  const kind = kindOf(method);
  const lacks = can.methods.includes(kind) ? [] : [{ field: 'payment_method.type', what: METHODS[kind] }];
  if (method.by !== 'card') return lacks;
  const asked = FEATURES.filter(({ isAsked }) => isAsked(method));
  const unoffered = asked.filter(({ isOffered }) => !isOffered(can));
  const incomplete = asked.filter(({ isOffered }) => isOffered(can));
  return [
    ...lacks,
    ...unoffered.map(({ field, what }) => ({ field: `${CARD}.${field}`, what })),
    ...incomplete.flatMap(({ missing, what }) =>
      (missing?.(can, method, request) ?? []).map((field): Lack => ({ field, what, isMissing: true })),
    ),
  ];
}

/** The open connections, by id. */
export type Capable = ReadonlyMap<string, Pick<ProviderConnection, 'capabilities'>>;

/**
 * Returns a function that lists what a connection of the catalogue lacks for a payment; nothing if it is not open. A
 * wallet can be charged only by the connection that enrolled it.
 */
export function lacksAt(
  connections: Capable,
  method: Method<unknown>,
  request: CreatePaymentRequest,
): (connection: ConnectionConfig) => Lack[] {
  const enrolledAt = method.by === 'wallet' ? method.enrolled?.at : undefined;
  return ({ id }) => {
    if (enrolledAt !== undefined && enrolledAt !== id) return [ELSEWHERE];
    const connection = connections.get(id);
    return connection ? lacksOf(method, request, connection.capabilities) : [];
  };
}

const ELSEWHERE: Lack = {
  field: 'payment_method.vaulted_token',
  what: 'this wallet, which is enrolled elsewhere',
  isElsewhere: true,
};

/** Describes what a connection lacks, in a few words. */
export function describeLack({ field, what, isMissing }: Lack): string {
  return isMissing ? `${what} without ${field}` : what;
}

/** Returns the refusal of a payment that no connection of its route can handle. */
export function notOffered(lacks: readonly Lack[]): ServiceError {
  const here = lacks.filter(({ isElsewhere }) => !isElsewhere);
  if (here.length === 0) {
    const message = "was enrolled at a connection outside this payment's route; nothing was sent";
    return fieldRefusal('OPERATION_NOT_SUPPORTED', ELSEWHERE.field, 'NOT_SUPPORTED', message);
  }
  const byField = new Map(here.map((lack) => [lack.field, lack]));
  const fields = [...byField.values()].map(({ field, what, isMissing }) =>
    isMissing
      ? {
          field,
          code: 'REQUIRED' as const,
          message: `is required: no connection of the payment's route offers ${what} without it`,
        }
      : {
          field,
          code: 'NOT_SUPPORTED' as const,
          message: `requests ${what}, which no connection of the payment's route offers together with the rest of the request`,
        },
  );
  return new ServiceError('OPERATION_NOT_SUPPORTED', `${describeFields(fields)}; nothing was sent`, {
    fields,
  });
}
