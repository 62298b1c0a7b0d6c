import { readConfig } from '#src/config.ts';
import { checkKeys } from '#src/server/check-keys.ts';
import type { Database } from '#src/store/engine/database.ts';
import { INSTALLATION, recordAction } from '#src/store/tables/audit-log.ts';
import { countSealed } from '#src/store/tables/installation-keys.ts';
import { type CardVault, cardVault } from '#src/vault/card-vault.ts';
import { installationKeys } from '#src/vault/key-file.ts';
import { actorOf } from './actor.ts';
import { withDatabase } from './command-database.ts';
import { type CommandIo, createCommand, parseArguments, runAsProcess } from './command-line.ts';
import { explainFailure } from './explain-failure.ts';
import { createProgress, howFar, type Progress } from './progress.ts';
import { type Resealing, resealAll } from './reseal.ts';

const COUNT_TIMEOUT_MS = 600_000;

const USAGE = `Usage: npm run vault:rotate

Seals every stored card number, one-time token, webhook secret and secret of a connection under the first of
VAULT_KEYS. It uses the service's environment and takes no options. See SECURITY.md, "Rotating the vault key".`;

async function main(argv: readonly string[], io: CommandIo): Promise<number> {
  const { stdout, stderr, environment } = io;
  parseArguments(argv, {}, environment);
  const config = readConfig(environment);
  const counts = await withDatabase(config, io, async ({ database, dataDir }) => {
    const keys = installationKeys(config, dataDir);
    // If the service would not start with these keys, nothing is resealed.
    await checkKeys(database, keys);
    const [current = ''] = keys.vaultKeys.keys();
    const action = {
      accountId: INSTALLATION,
      actor: actorOf(config),
      action: 'vault:rotate',
      subject: current,
    };
    await recordAction(database, { ...action, detail: 'begun' });
    const resealed = await reseal(database, cardVault(keys.vaultKeys), createProgress(stderr));
    await recordAction(database, { ...action, detail: Object.entries(resealed).flat().join(' ') });
    return resealed;
  });
  stdout.write(`resealed     ${counts.resealed}\n`);
  stdout.write(`were current ${counts.current}\n`);
  stdout.write(`changed      ${counts.changed}\n`);
  stdout.write(`unreadable   ${counts.unreadable}\n`);
  if (counts.unreadable > 0) {
    stderr.write(
      'Not finished: the unreadable values are sealed under a key that VAULT_KEYS lacks, or are damaged. Keep every old key.\n',
    );
    return 1;
  }
  stdout.write(counts.resealed + counts.changed === 0 ? ALL_CURRENT : RUN_AGAIN);
  return 0;
}

const ALL_CURRENT =
  'Every stored card, one-time token, webhook secret and secret of a connection is sealed under the current key. You may retire older keys.\n';
const RUN_AGAIN =
  'Make sure that every replica uses the new key, then run this again until nothing is resealed.\n';

async function reseal(database: Database, vault: CardVault, progress: Progress): Promise<Resealing> {
  const total = Number(await database.transaction((run) => countSealed(run, ''), COUNT_TIMEOUT_MS));
  const startedMs = performance.now();
  let done = 0;
  const onOne = () => {
    done += 1;
    progress.state(`sealing ${howFar(done, Math.max(done, total), performance.now() - startedMs)}`);
  };
  const counts = await resealAll(database, vault, onOne);
  progress.end();
  return counts;
}

/** Runs the command. */
export const run = createCommand(USAGE, main, (error) => `Not done: ${explainFailure(error)}`);

if (import.meta.main) await runAsProcess(run);
