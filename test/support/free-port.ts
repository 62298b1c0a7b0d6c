import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * These ports are below the range from which systems assign ports to connections and to servers on port 0, so that
 * nobody else gets one in the meantime.
 */
const [FROM, TO] = [20_000, 30_000];

/** Finds a port on 127.0.0.1 at which nothing listens. */
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
