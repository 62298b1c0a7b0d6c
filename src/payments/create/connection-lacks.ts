import type { ConnectionConfig } from '#gen/payments/config/catalogue_pb.js';
import { Payment_Workflow } from '#gen/payments/v1/payment_pb.js';
import type { Capabilities, MethodKind } from '#src/connectors/capabilities.ts';
import type { ProviderConnection } from '#src/connectors/connector.ts';
import { describeFields, fieldRefusal, ServiceError } from '#src/service-error.ts';
import type { CardOptions, ChosenMethod } from './payment-method.ts';

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

const METHODS: Readonly<Record<MethodKind, string>> = {
  card: 'card payments',
  wallet_redirect: 'redirects to wallets',
  wallet_enrollment: 'payments with enrolled wallets',
};

/** Lists the features that this payment method needs and a connection lacks. */
export function lacksOf(method: ChosenMethod, can: Capabilities): Lack[] {
  const kind = methodKind(method);
  const lacks = can.methods.includes(kind) ? [] : [{ field: 'payment_method.type', what: METHODS[kind] }];
  return method.kind === 'wallet' ? lacks : [...lacks, ...cardLacks(method.options, can)];
}

/** The open connections, by id. */
export type Capable = ReadonlyMap<string, Pick<ProviderConnection, 'capabilities'>>;

/**
 * Returns a function that lists the features a connection of the catalogue lacks; none for a connection that is not
 * open.
 *
 * @param enrolledAt the connection where the payment's wallet was enrolled; undefined if it has none.
 */
export function lacksAt(
  connections: Capable,
  method: ChosenMethod,
  enrolledAt: string | undefined,
): (connection: ConnectionConfig) => Lack[] {
  return ({ id }) => {
    if (enrolledAt !== undefined && enrolledAt !== id) return [ELSEWHERE];
    const connection = connections.get(id);
    return connection ? lacksOf(method, connection.capabilities) : [];
  };
}

const ELSEWHERE: Lack = {
  field: 'payment_method.vaulted_token',
  what: 'this wallet, which is enrolled elsewhere',
  isElsewhere: true,
};

function methodKind({ kind, workflow }: ChosenMethod): MethodKind {
  if (kind !== 'wallet') return 'card';
  return workflow === Payment_Workflow.REDIRECT ? 'wallet_redirect' : 'wallet_enrollment';
}

function cardLacks(requested: CardOptions, can: Capabilities): Lack[] {
  const { threeDSecureSetupId, threeDSecure, storedCredentials, browser } = requested;
  const asks: readonly [isAsked: boolean, isOffered: boolean, field: string, what: string][] = [
    [requested.verify, can.verify, 'verify', 'verifications'],
    [!requested.capture, can.authorization, 'capture', 'authorizations without capture'],
    [requested.installments > 1, can.installments, 'installments', 'installments'],
    [threeDSecureSetupId !== undefined, can.challenge, 'three_d_secure.three_d_secure_setup_id', SETUPS],
    [threeDSecure !== undefined, can.externalThreeDSecure, 'three_d_secure', RESULTS],
    [storedCredentials !== undefined, can.storedCredentials, 'stored_credentials', 'stored credentials'],
  ];
  const lacks = asks
    .filter(([isAsked, isOffered]) => isAsked && !isOffered)
    .map(([, , field, what]) => ({ field: `${CARD}.${field}`, what }));
  const browserFields =
    threeDSecureSetupId !== undefined && can.challenge ? can.missingForChallenge?.(browser) : [];
  const resultFields = threeDSecure && can.externalThreeDSecure ? can.missingForResults?.(threeDSecure) : [];
  return [
    ...lacks,
    ...missing('customer_payer.browser_info', SETUPS, browserFields),
    ...missing(`${CARD}.three_d_secure`, RESULTS, resultFields),
  ];
}

function missing(path: string, what: string, names: readonly string[] = []): Lack[] {
  return names.map((name) => ({ field: `${path}.${name}`, what, isMissing: true }));
}

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
