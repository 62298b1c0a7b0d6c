import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A checkout of another commit. */
export type OlderCheckout = { readonly path: string; readonly commit: string; remove(): void };

/**
 * Checks out a commit in a separate directory, with this checkout's dependencies if the lockfile is the same, and
 * otherwise with its own.
 *
 * @param ref a branch, tag or commit. @throws Error if git does not know it, or if its dependencies cannot be
 *   installed.
 */
export function checkOut(root: string, ref: string): OlderCheckout {
  const git = (...args: string[]) => execFileSync('git', ['-C', root, ...args], { encoding: 'utf8' }).trim();
  const commit = git('rev-parse', '--short', '--verify', `${ref}^{commit}`);
  const home = mkdtempSync(join(tmpdir(), 'payments-older-'));
  const path = join(home, 'checkout');
  git('worktree', 'add', '--detach', '--quiet', path, commit);
  const remove = () => {
    git('worktree', 'remove', '--force', path);
    rmSync(home, { recursive: true, force: true });
  };
  try {
    if (lockfile(path) === lockfile(root))
      symlinkSync(join(root, 'node_modules'), join(path, 'node_modules'));
    else install(path);
  } catch (error) {
    remove();
    throw error;
  }
  return { path, commit, remove };
}

const lockfile = (checkout: string) => readFileSync(join(checkout, 'package-lock.json'), 'utf8');

/** Installs the service's runtime dependencies. Under `npm run`, npm's variables name this checkout, not the other. */
function install(path: string): void {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name)));
  console.error('installing the dependencies of the other commit, whose lockfile differs');
  execFileSync('npm', ['ci', '--omit=dev', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: path,
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}
