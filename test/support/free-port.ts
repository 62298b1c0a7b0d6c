import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Ports below those that systems give to connections, and to servers that listen on any: nobody gets one meanwhile. */
const [FROM, TO] = [20_000, 30_000];

/** Finds a port of 127.0.0.1 on which nothing listens. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FROM, TO);
    const probe = createServer();
    const isFree = new Promise<boolean>((resolve) => {
      probe.once('error', () => resolve(false)).once('listening', () => resolve(true));
    });
    probe.listen(port, '127.0.0.1');
    if (!(await isFree)) continue;
    probe.close();
    await once(probe, 'close');
    return port;
  }
}
