import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { spawnCommand } from '../support/service-process.ts';

const REQUEST = join(import.meta.dirname, '../scenarios/05-card-authorization/request.json');
const KEYS = {
  VAULT_KEYS: `k1:${randomBytes(32).toString('base64')}`,
  HASH_KEY: randomBytes(32).toString('base64'),
};
let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database?.drop());

it.each<[name: string, environment: Readonly<Record<string, string>>, args: string[], RegExp, code: number]>([
  ['doctor', {}, [], /, 0 failed\n$/, 0],
  ['doctor', { PORT: 'none' }, [], /^FAILED {3}configuration: PORT must be/m, 1],
  ['explain-route', {}, [REQUEST], /Cards elsewhere: TAKEN\n/, 0],
  ['explain-route', {}, ['nowhere.json'], /^nowhere\.json cannot be read \(ENOENT\)\n$/, 1],
  ['retention', {}, ['--calls', '1'], /^calls {2}0\n$/, 0],
  ['rotate-vault', {}, [], /^resealed {5}0\n(?:.*\n)*.*You may retire older keys\.\n$/, 0],
  ['rotate-vault', { HASH_KEY: 'short' }, [], /^Not done: HASH_KEY /, 1],
])(
  '%s with %j, run as a separate process, prints its findings and exits with the matching code (%#)',
  async (name, environment, args, printed, code) => {
    const all = { DATABASE_URL: database.url, ALLOW_UNSAFE_DATABASE: 'on', ...KEYS, ...environment };
    const ended = await spawnCommand(name, all, ...args);
    expect([ended.code, ended.stdout + ended.stderr]).toEqual([code, expect.stringMatching(printed)]);
  },
);
