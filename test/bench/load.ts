import { closedLoop, type LoopResult, type Plan } from './closed-loop.ts';
import { openGrpcClient } from './grpc-client.ts';
import { openRestClient } from './rest-client.ts';
import { answerAsked } from './worker.ts';

/** A command for the load generator. */
export type LoadOrder = {
  readonly protocol: 'rest' | 'grpc';
  readonly port: number;
  readonly runId: string;
  readonly plan: Plan;
};

// The load generator: a separate process, so that its cost does not count as the server's.
answerAsked(async ({ protocol, port, runId, plan }: LoadOrder): Promise<LoopResult> => {
  const open = protocol === 'rest' ? openRestClient : openGrpcClient;
  const client = await open(port, plan.concurrency, runId);
  try {
    return await closedLoop(plan, client.send);
  } finally {
    client.close();
  }
});
