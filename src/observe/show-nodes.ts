import type { NodeState } from '#src/store/engine/database.ts';
import type { Metrics } from './metrics.ts';

/** Sets the gauge of each node of a distributed database. */
export function showNodes(metrics: Metrics, nodes: readonly NodeState[]): void {
  metrics.nodes.reset();
  for (const { node, ill } of nodes) metrics.nodes.set({ node }, ill === undefined ? 0 : 1);
}
