import type { Gate } from './gate.ts';
import type { Provider } from './providers/provider.ts';
import { type Link, startTcpProxy, type TcpProxy } from './tcp-proxy.ts';

/** Maximum size of the request line with its headers. */
const HEAD_BYTES = 1_024;

/**
 * Starts a proxy in front of the provider. It consults the gate at the start of a call and of its response, at
 * `charge`, `look_up`, `close` and `operation` (as the provider classifies the call), each `:request` and `:response`.
 * A held request whose caller has disconnected is still delivered when released, like bytes in transit.
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
    // A connection carries one request at a time, so each request begins with a chunk.
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
