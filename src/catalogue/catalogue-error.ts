/** Fault in the catalogue file; the message names every place. */
export class CatalogueError extends Error {
  override readonly name = 'CatalogueError';
}
