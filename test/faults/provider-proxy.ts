import type { Gate } from './gate.ts';
import type { Provider } from './providers/provider.ts';
import { type Link, startTcpProxy, type TcpProxy } from './tcp-proxy.ts';

/** The request line and its headers are within so much of it. */
const HEAD_BYTES = 1_024;

/**
 * A proxy before the provider. It asks the gate where a call begins and where its answer begins, at `charge`, `look_up`,
 * `close` and `operation` (which those are, the provider tells), each `:request` and `:response`. A request that is held and
 * whose caller is gone is still delivered when it is released, as bytes on their way are.
 */
export function startProviderProxy(
  targetPort: number,
  gate: Gate,
  callOf: Provider['callOf'],
): Promise<TcpProxy> {
  return startTcpProxy(targetPort, () => {
    const calls: string[] = [];
    return {
      requests: (link) => carryRequests(link, gate, calls, callOf),
      responses: (link) => carryAnswers(link, gate, calls),
    };
  });
}

async function carryRequests(
  { client, server, wait }: Link,
  gate: Gate,
  calls: string[],
  callOf: Provider['callOf'],
): Promise<void> {
  for await (const chunk of client) {
    await wait();
    // One request at a time on a connection, so that each begins with a chunk.
    const call = callOf(chunk.toString('latin1', 0, HEAD_BYTES));
    if (call) {
      const verdict = await gate.pass(`${call}:request`);
      if (verdict !== 'pass') return void client.resetAndDestroy();
      calls.push(call);
    }
    server.write(chunk);
  }
}

async function carryAnswers({ client, server, wait }: Link, gate: Gate, calls: string[]): Promise<void> {
  for await (const chunk of server) {
    await wait();
    const call = calls.shift();
    if (call) {
      const verdict = await gate.pass(`${call}:response`);
      if (verdict !== 'pass') return void client.resetAndDestroy();
    }
    client.write(chunk);
  }
}
