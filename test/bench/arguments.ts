/** Reads an option that must be a positive integer. @throws Error that names the option. */
export function positive(name: string, text: string): number {
  const number = Number(text);
  if (number > 0 && Number.isInteger(number)) return number;
  throw new Error(`--${name} must be a positive whole number`);
}

/** As `positive`, for an option that may be absent. */
export function optionalPositive(name: string, text: string | undefined): number | undefined {
  return text === undefined ? undefined : positive(name, text);
}
