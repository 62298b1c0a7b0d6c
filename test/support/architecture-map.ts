import { dirname } from 'node:path';

/**
 * Compares the map of rooms in ARCHITECTURE.md with the actual files. A row names a room of src/ in its first cell, and
 * in its last cell the files at which a reader starts, without `.ts` and separated by `·`. A folder needs no row of its
 * own if a folder around it has one.
 *
 * @returns one line for each folder that no row covers, each row named twice, and each name without a file.
 */
export function mapBreaches(architecture: string, files: readonly string[]): string[] {
  const rows = [...architecture.matchAll(/^\| `((?:[a-z-]+\/)+|\/)` \|.*\| ([^|]+) \|$/gm)];
  const rooms = rows.map(([, room = '']) => (room === '/' ? 'src/' : `src/${room}`));
  const folders = [...new Set(files.map((file) => `${dirname(file)}/`))];
  const hasRow = (folder: string) =>
    rooms.some((room) => folder === room || (room !== 'src/' && folder.startsWith(room)));
  const named = rows.flatMap(([, , starts = ''], i) =>
    starts.split(' · ').map((name) => `${rooms[i]}${name}.ts`),
  );
  return [
    ...folders
      .filter((folder) => !hasRow(folder))
      .map((folder) => `${folder}: the map in ARCHITECTURE.md has no row for it`),
    ...rooms
      .filter((room, i) => rooms.indexOf(room) !== i)
      .map((room) => `${room}: the map in ARCHITECTURE.md has two rows for it`),
    ...named
      .filter((name) => !files.includes(name))
      .map((name) => `${name}: the map in ARCHITECTURE.md names it, but it does not exist`),
  ];
}
