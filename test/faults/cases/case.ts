import type { World } from '../world.ts';

/**
 * A fault and the expected behavior of the service. The invariants that must hold after any fault are checked
 * afterwards.
 */
export type Case = {
  readonly name: string;
  /** Causes the fault, reports unexpected behavior with `world.expect`, and leaves a replica running. */
  run(world: World): Promise<void>;
  /** Set for a case that harms the whole PostgreSQL server; the case then gets a separate server. */
  readonly ownCluster?: true;
  /** Set for a case that needs both cores to itself. */
  readonly alone?: true;
  /** Set for the few cases that run with `npm test`. */
  readonly short?: true;
};
