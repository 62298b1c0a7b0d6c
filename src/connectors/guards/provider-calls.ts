import type { ProviderConnection } from '../port/connector.ts';
import type { Outcome } from '../port/outcome.ts';

/** The methods of a connection that call the provider and return an outcome. */
export type CallName = {
  [Name in keyof ProviderConnection]-?: NonNullable<ProviderConnection[Name]> extends (
    argument: never,
  ) => Promise<Outcome>
    ? Name
    : never;
}[keyof ProviderConnection];

/** The argument of such a method. */
export type CallArgument = Parameters<NonNullable<ProviderConnection[CallName]>>[0];

/**
 * The calls; true for a call that begins something at the provider, rather than looking up or completing what an
 * earlier call began. If ProviderConnection gains a call, this does not compile until the call is added.
 */
export const BEGINS: Readonly<Record<CallName, boolean>> = {
  pay: true,
  capture: true,
  cancel: true,
  refund: true,
  complete: false,
  lookUp: false,
  repeatOperation: false,
  enrollWallet: true,
  lookUpEnrollment: false,
};

/** All calls. */
const CALLS = Object.keys(BEGINS) as CallName[];

/**
 * Wraps each call of a connection; missing methods stay absent.
 *
 * @param around makes the call, or returns an outcome without making it. It must not throw.
 */
export function aroundCalls<Connection extends ProviderConnection>(
  connection: Connection,
  around: (name: CallName, argument: CallArgument, call: () => Promise<Outcome>) => Promise<Outcome>,
): Connection {
  const wrapped: Partial<Record<CallName, (argument: CallArgument) => Promise<Outcome>>> = {};
  for (const name of CALLS) {
    const method = connection[name] as ((argument: CallArgument) => Promise<Outcome>) | undefined;
    if (method) wrapped[name] = (argument) => around(name, argument, () => method(argument));
  }
  return { ...connection, ...wrapped };
}
