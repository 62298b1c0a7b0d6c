import net, { type AddressInfo, type Socket } from 'node:net';
import { ready } from './worker.ts';

// A TCP proxy that delays every byte, so that a database on this machine seems as distant as one in another zone.
// Arguments: the port behind it, and the delay each way in milliseconds.

const [port, delayMs] = process.argv.slice(2).map(Number) as [number, number];

function pass(from: Socket, to: Socket): void {
  from.on('data', (bytes) => setTimeout(() => to.write(bytes), delayMs));
  from.on('close', () => setTimeout(() => to.destroy(), delayMs));
  from.on('error', () => {});
}

const server = net.createServer({ noDelay: true }, (client) => {
  const behind = net.connect({ port, host: '127.0.0.1', noDelay: true });
  pass(client, behind);
  pass(behind, client);
});
server.listen(0, '127.0.0.1', () => ready((server.address() as AddressInfo).port));
