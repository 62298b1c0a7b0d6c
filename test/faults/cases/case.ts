import type { World } from '../world.ts';

/** A fault, and what is expected of the service. What must hold after any fault is checked when it has run. */
export type Case = {
  readonly name: string;
  /** Makes the fault happen, says with `world.expect` what was not as told, and leaves a replica alive. */
  run(world: World): Promise<void>;
  /** It harms the whole PostgreSQL, and gets one of its own. */
  readonly ownCluster?: true;
  /** It needs both cores to itself. */
  readonly alone?: true;
  /** A small part of it runs with `npm test`. */
  readonly short?: true;
};
