/** A fault in the catalogue file. The message lists every place at fault. */
export class CatalogueError extends Error {
  override readonly name = 'CatalogueError';
}
