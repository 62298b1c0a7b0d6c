import fc from 'fast-check';
import type { Behaviour } from '../payments/ledger-provider.ts';

/** Those who act on a payment concurrently. */
export const ACTORS = [
  'create',
  'operation',
  'checker one',
  'checker two',
  'news',
  'network',
  'merchant',
  'dispute',
] as const;

/** Those who act on a payment with a code: its payer, too, and the provider that ends it. */
const CODE_ACTORS = [
  ...['create', 'operation', 'checker one', 'checker two', 'news', 'network', 'payer', 'end'],
] as const satisfies readonly ActorName[];

export type ActorName = (typeof ACTORS)[number] | 'payer' | 'end';

/** The choices of fast-check apart from the order of the steps. */
export type Plan = {
  /**
   * True if the payment was approved earlier, so that an operation on it competes with the checkers and the
   * notifications.
   */
  readonly isMade: boolean;
  /** True if another operation on a payment approved earlier has ended, too. */
  readonly isOperated: boolean;
  readonly capture: boolean;
  /** True for a payment with a code, which its payer pays later. */
  readonly isCode?: boolean;
  readonly operation: 'capture' | 'cancel' | 'refund';
  /** True if each capture is the last, so that the provider releases the rest. */
  readonly isFinal: boolean;
  /** True if the operation is planned without the earlier amounts, so that only the database can refuse it. */
  readonly forgets: boolean;
  /** The money that the merchant moves at the provider itself. */
  readonly outside: 'capture' | 'refund';
  /** The provider's behavior for each call that moves money; after the last of these, it does what is requested. */
  readonly behaviours: readonly Behaviour[];
  /**
   * True if processes stand still past their leases. Otherwise only moments pass, and nobody may ask about a transaction
   * before its caller has its outcome.
   */
  readonly leasesEnd: boolean;
  /** The actors that act. */
  readonly actors: readonly ActorName[];
  /** The actor that dies, and the number of steps after which it dies; it survives if it takes fewer. */
  readonly dies: { readonly actor: ActorName; readonly afterSteps: number };
};

const BEHAVIOURS: readonly Behaviour[] = [
  'does it',
  'does it, unanswered',
  'never hears of it',
  'declines it',
  'delays it',
  'is reached late',
];

export const PLANS: fc.Arbitrary<Plan> = fc.record({
  isMade: fc.boolean(),
  isOperated: fc.boolean(),
  capture: fc.boolean(),
  operation: fc.constantFrom('capture', 'cancel', 'refund'),
  isFinal: fc.boolean(),
  forgets: fc.boolean(),
  outside: fc.constantFrom('capture', 'refund'),
  behaviours: fc.array(fc.constantFrom(...BEHAVIOURS), { maxLength: 4 }),
  leasesEnd: fc.boolean(),
  actors: fc.subarray([...ACTORS], { minLength: 3 }),
  dies: fc.record({ actor: fc.constantFrom(...ACTORS), afterSteps: fc.nat(14) }),
});

/** The choices for a payment with a code. If it is made and operated on, it was paid earlier. */
export const CODE_PLANS: fc.Arbitrary<Plan> = fc
  .tuple(
    PLANS,
    fc.subarray([...CODE_ACTORS], { minLength: 3 }),
    fc.record({ actor: fc.constantFrom(...CODE_ACTORS), afterSteps: fc.nat(14) }),
    fc.constantFrom<Plan['operation']>('cancel', 'refund'),
  )
  .map(([plan, actors, dies, operation]) => ({
    ...{ ...plan, isCode: true, capture: true, actors, dies, operation },
    ...{ forgets: false, isFinal: false },
  }));
