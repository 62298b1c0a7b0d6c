import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { expect, it } from 'vitest';
import { runningPort } from '#src/postgres/embedded-postgres-server.ts';

it('a postmaster.pid that PostgreSQL deletes during the read counts as no server', async () => {
  const data = mkdtempSync(join(tmpdir(), 'postmaster-pid-'));
  const path = JSON.stringify(join(data, 'postmaster.pid'));
  const comesAndGoes = `const fs = require('node:fs');
    for (;;) { fs.writeFileSync(${path}, '1\\n'); fs.rmSync(${path}); }`;
  const worker = new Worker(comesAndGoes, { eval: true });
  try {
    const ports = Array.from({ length: 20_000 }, () => runningPort(data));
    expect(new Set(ports)).toEqual(new Set([undefined]));
  } finally {
    await worker.terminate();
    rmSync(data, { recursive: true, force: true });
  }
});
