/** Thrown if the embedded PostgreSQL cannot run here. The message gives the reason and an alternative. */
export class EmbeddedPostgresError extends Error {
  override readonly name = 'EmbeddedPostgresError';

  constructor(why: string, options: { cause?: unknown; logTail?: string } = {}) {
    const log = options.logTail ? `\nThe last lines of its log:\n${options.logTail}` : '';
    super(
      `${why}\nTo use another PostgreSQL, set DATABASE_URL.${log}`,
      options.cause === undefined ? undefined : { cause: options.cause },
    );
  }
}
