import pg from 'pg';
import { expect, it } from 'vitest';
import { DatabaseUnavailableError } from '#src/store/engine/database-error.ts';
import { despiteDeadlocks } from '#src/store/engine/despite-deadlocks.ts';

function error(code: string): Error {
  const failure = new pg.DatabaseError('failed', 6, 'error');
  failure.code = code;
  return failure;
}

/** Returns a statement that fails in turn with these errors, and then succeeds. */
function failing(...errors: Error[]): () => Promise<string> {
  return async () => {
    const failure = errors.shift();
    if (failure) throw failure;
    return 'done';
  };
}

const DEADLOCK = error('40P01');

it('a statement that a deadlock ended runs again', async () => {
  const wrapped = new DatabaseUnavailableError(DEADLOCK);
  expect(await despiteDeadlocks(failing(DEADLOCK, wrapped))).toBe('done');
});

it('a statement that every time ends in a deadlock fails after five times', async () => {
  const statement = failing(DEADLOCK, DEADLOCK, DEADLOCK, DEADLOCK, DEADLOCK);
  await expect(despiteDeadlocks(statement)).rejects.toBe(DEADLOCK);
  expect(await statement()).toBe('done');
});

it('a statement that fails for another reason does not run again', async () => {
  const other = error('57014');
  await expect(despiteDeadlocks(failing(other))).rejects.toBe(other);
});
