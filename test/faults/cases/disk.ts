import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmdirSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { postgresUser } from '#src/postgres/embedded-postgres-user.ts';
import { paymentOf, reasonOf, send } from '../orders.ts';
import type { World } from '../world.ts';
import type { Case } from './case.ts';

/** A disk that is really full: the payments' tables are on a file system of a few megabytes. */
export const DISK: readonly Case[] = [
  {
    name: 'disk full (for real, on a small file system)',
    async run(world) {
      const disk = await mountSmallDisk(world);
      const replica = await world.startReplica({ unhurried: true });
      if (!disk) return;
      const ballast = join(disk, 'ballast');
      fill(ballast);
      const refused = world.order({ vault: false });
      const answer = await send(replica.url, refused);
      world.expect(reasonOf(answer) === 'SERVICE_UNAVAILABLE', `the response was ${answer.status}`);
      world.expect((await world.ledger()).length === 0, 'something was charged');

      // There is room for a while, and then none again while payments are in progress.
      rmSync(ballast);
      const early = await world.insist(refused);
      world.expect(paymentOf(early)?.status === 'SUCCEEDED', 'the payment failed although there was room');
      const stop = world.gate.hold('charge:response', world.random.integer(1, 10));
      const orders = Array.from({ length: 40 }, () => world.order({ vault: false }));
      const sending = orders.map((order) => send(replica.url, order));
      await stop.reached;
      fill(ballast);
      stop.release();
      await Promise.all(sending);
      rmSync(ballast);
      for (const order of orders) await world.insist(order);
    },
  },
];

/**
 * Mounts a small file system and moves the payments' tables there. @returns its path; undefined if mounting is not
 * allowed.
 */
async function mountSmallDisk(world: World): Promise<string | undefined> {
  const directory = mkdtempSync('/tmp/faults-disk-');
  const user = postgresUser();
  const options = `size=4m,mode=0700${user ? `,uid=${user.uid},gid=${user.gid}` : ''}`;
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', directory]);
  if (mounted.status !== 0) {
    rmdirSync(directory);
    world.skip('a file system cannot be mounted here');
    return undefined;
  }
  const tablespace = `small_${world.random.integer(0, 2 ** 30)}_${process.pid}`;
  world.atEnd(async () => {
    await world.cluster.run(`DROP TABLESPACE IF EXISTS ${tablespace}`);
    spawnSync('umount', [directory]);
    rmdirSync(directory);
  });
  await world.cluster.run(`CREATE TABLESPACE ${tablespace} LOCATION '${directory}'`);
  for (const table of ['payment', 'transaction']) {
    await world.query(`ALTER TABLE ${table} SET TABLESPACE ${tablespace}`);
  }
  return directory;
}

function fill(path: string): void {
  const file = openSync(path, 'w');
  try {
    for (const size of [65_536, 4_096]) while (tryWrite(file, size));
  } finally {
    closeSync(file);
  }
}

/** Writes bytes. @returns whether there was room for them. */
function tryWrite(file: number, size: number): boolean {
  try {
    return writeSync(file, Buffer.alloc(size)) === size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOSPC') return false;
    throw error;
  }
}
