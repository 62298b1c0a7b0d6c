/** The kind of a fault: a catalogue that breaks a rule, or one that cannot be opened, and why. */
export type CatalogueFaultKind = 'CATALOGUE_INVALID' | 'SECRET_MISSING' | 'CONNECTION_REPOINTED';

/** A fault in a catalogue. The message lists every place at fault. */
export class CatalogueError extends Error {
  override readonly name = 'CatalogueError';
  readonly kind: CatalogueFaultKind;
  /** Id of the connection at fault; undefined if the fault is elsewhere. */
  readonly connectionId: string | undefined;
  /** The published version at fault; 0 if the catalogue is from a file, or not published. */
  version = 0;
  /** The faults of other connections of the catalogue. */
  others: readonly CatalogueError[] = [];

  constructor(message: string, kind: CatalogueFaultKind = 'CATALOGUE_INVALID', connectionId?: string) {
    super(message);
    this.kind = kind;
    this.connectionId = connectionId;
  }
}
