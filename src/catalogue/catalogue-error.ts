/** Fault in the catalogue file. The message lists every place. */
export class CatalogueError extends Error {
  override readonly name = 'CatalogueError';
}
