import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A checkout of another commit. */
export type OlderCheckout = { readonly path: string; readonly commit: string; remove(): void };

/**
 * Checks a commit out in a directory of its own, with the dependencies of this checkout.
 *
 * @param ref a branch, tag or commit. @throws Error when git knows none.
 */
export function checkOut(root: string, ref: string): OlderCheckout {
  const git = (...args: string[]) => execFileSync('git', ['-C', root, ...args], { encoding: 'utf8' }).trim();
  const commit = git('rev-parse', '--short', '--verify', `${ref}^{commit}`);
  const home = mkdtempSync(join(tmpdir(), 'payments-older-'));
  const path = join(home, 'checkout');
  git('worktree', 'add', '--detach', '--quiet', path, commit);
  symlinkSync(join(root, 'node_modules'), join(path, 'node_modules'));
  return {
    path,
    commit,
    remove() {
      git('worktree', 'remove', '--force', path);
      rmSync(home, { recursive: true, force: true });
    },
  };
}
