/** The catalogue file is wrong; the message names each place. */
export class CatalogueError extends Error {
  override readonly name = 'CatalogueError';
}
