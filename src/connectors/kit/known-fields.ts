/** Fields that a provider may leave out. */
type Reported<Of> = { readonly [Name in keyof Of]: Of[Name] | undefined };

/** Leaves out the fields that a provider did not report, such as those of a payer's instructions. */
export function knownFields<Of extends object>(reported: Reported<Of>): Of {
  return Object.fromEntries(Object.entries(reported).filter(([, value]) => value !== undefined)) as Of;
}
