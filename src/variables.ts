/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Makes the typed readers of an environment's variables. For a wrong one, they return some value of its type.
 *
 * @param problems gets a sentence for each wrong one: its name, never its value.
 */
export function variablesOf(environment: Environment, problems: string[]) {
  /** An empty variable counts as absent. */
  const text = (name: string) => environment[name] || undefined;
  return {
    text,
    integer(name: string, fallback: number, min: number, max: number): number {
      const value = text(name);
      const number = value === undefined ? fallback : Number(value);
      if (Number.isInteger(number) && number >= min && number <= max) return number;
      problems.push(`${name} must be an integer from ${min} to ${max}`);
      return fallback;
    },
    flag(name: string, fallback: boolean): boolean {
      const value = text(name) ?? (fallback ? 'on' : 'off');
      if (value !== 'on' && value !== 'off') problems.push(`${name} must be on or off`);
      return value === 'on';
    },
    oneOf(name: string, values: readonly string[], fallback: string): string {
      const value = text(name) ?? fallback;
      if (!values.includes(value)) problems.push(`${name} must be one of ${values.join(', ')}`);
      return value;
    },
    httpUrl(name: string): string | undefined {
      const value = text(name);
      if (value !== undefined && !isUrlOf(value, ['http:', 'https:'])) {
        problems.push(`${name} must be an http or https URL`);
      }
      return value;
    },
  };
}

/** Returns true if a value is a URL of one of these protocols. */
export function isUrlOf(value: string, protocols: readonly string[]): boolean {
  return URL.canParse(value) && protocols.includes(new URL(value).protocol);
}
