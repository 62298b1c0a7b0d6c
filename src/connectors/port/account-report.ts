/** The environment of a provider's account: for trying, or for real money. */
export type Environment = 'TEST' | 'LIVE';

/** A provider's judgement of a connection's credentials. */
export type AccountReport =
  | {
      readonly result: 'ACCEPTED';
      /** The provider's id of the account; undefined if the credentials may not read it. */
      readonly account: string | undefined;
      /** undefined if neither the provider nor its address tells. */
      readonly environment: Environment | undefined;
    }
  | {
      /**
       * - `REFUSED`: the provider refuses the credentials, or they belong to another account than the settings name.
       * - `UNREACHABLE`: no answer of the provider's arrived, or one about itself: it is too busy, or at fault.
       * - `NOT_TESTABLE`: the provider answered, but says nothing about the credentials.
       */
      readonly result: 'REFUSED' | 'UNREACHABLE' | 'NOT_TESTABLE';
      /** Says what came instead, for operators. Contains no secret. */
      readonly detail: string;
    };

/** The hosts of a provider's own API. A `*` stands for letters, digits and hyphens. */
export type ProviderHosts = Readonly<Record<Environment, readonly string[]>>;
