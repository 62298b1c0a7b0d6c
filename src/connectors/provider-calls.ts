import type { Outcome, ProviderConnection } from './connector.ts';

/** The methods of a connection that call the provider and learn an outcome. */
export type CallName = {
  [Name in keyof ProviderConnection]-?: NonNullable<ProviderConnection[Name]> extends (
    argument: never,
  ) => Promise<Outcome>
    ? Name
    : never;
}[keyof ProviderConnection];

/** The argument of one of those methods. */
export type CallArgument = Parameters<NonNullable<ProviderConnection[CallName]>>[0];

/** Each of them. A method that the port gains is missing here until it is named, and nothing compiles. */
const CALLS = Object.keys({
  pay: true,
  capture: true,
  cancel: true,
  refund: true,
  complete: true,
  lookUp: true,
  repeatOperation: true,
  enrollWallet: true,
  lookUpEnrollment: true,
} satisfies Record<CallName, true>) as CallName[];

/**
 * The connection with something around each of its calls; a method that it does not have, it still does not have.
 *
 * @param around makes the call, or an outcome without it. It must not throw.
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
