import type { Gate } from './gate.ts';
import { type Link, startTcpProxy, type TcpProxy } from './tcp-proxy.ts';

/**
 * A proxy before the provider. It asks the gate where a call begins and where its answer begins, at `charge`, `look_up`,
 * `close` and `operation`, each `:request` and `:response`. A request that is held and whose caller is gone is still delivered when
 * it is released, as bytes on their way are.
 */
export function startProviderProxy(targetPort: number, gate: Gate): Promise<TcpProxy> {
  return startTcpProxy(targetPort, () => {
    const calls: string[] = [];
    return {
      requests: (link) => carryRequests(link, gate, calls),
      responses: (link) => carryAnswers(link, gate, calls),
    };
  });
}

async function carryRequests({ client, server, wait }: Link, gate: Gate, calls: string[]): Promise<void> {
  for await (const chunk of client) {
    await wait();
    // One request at a time on a connection, so that each begins with a chunk.
    const call = callOf(chunk.toString('latin1', 0, 200));
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

function callOf(head: string): string | undefined {
  if (/^POST \/v1\/by-idempotency-key\/[^/ ]+\/close /.test(head)) return 'close';
  if (/^GET \/v1\/by-idempotency-key\//.test(head)) return 'look_up';
  if (/^POST \/v1\/(captures|cancellations|refunds|completions) /.test(head)) return 'operation';
  return /^POST \/v1\/(charges|verifications|wallet-)/.test(head) ? 'charge' : undefined;
}
