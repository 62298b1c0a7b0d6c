/** Describes an error for the log: its kind and origin, but not its message, which may quote a value. */
export function describeError(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { name: typeof error };
  const code = 'code' in error ? String(error.code).slice(0, 64) : undefined;
  const frames = error.stack?.split('\n').filter((line) => /^\s+at /.test(line));
  return {
    name: error.name,
    ...(code && { code }),
    stack: frames?.slice(0, 10).map((frame) => frame.trim()),
    ...(error.cause !== undefined && { cause: describeError(error.cause) }),
  };
}
