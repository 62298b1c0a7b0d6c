/**
 * Compares the map of rooms in ARCHITECTURE.md with the actual files. A row names a room of src/ in its first cell and
 * the room's files in its last, without `.ts` and separated by `·`; a name with a slash stands for a whole folder. A
 * room within a room has its own row.
 *
 * @returns one line for each file that the map does not name exactly once, and for each name without a file.
 */
export function mapBreaches(architecture: string, files: readonly string[]): string[] {
  const named = [...architecture.matchAll(/^\| `((?:[a-z-]+\/)*|\/)` \|.*\| ([^|]+) \|$/gm)].flatMap(
    ([, room = '', names = '']) =>
      names
        .split(' · ')
        .map((name) => `src/${room === '/' ? '' : room}${name}${name.endsWith('/') ? '' : '.ts'}`),
  );
  const isOf = (file: string, name: string) => (name.endsWith('/') ? file.startsWith(name) : file === name);
  const timesNamed = (file: string) => named.filter((name) => isOf(file, name)).length;
  return [
    ...files
      .filter((file) => timesNamed(file) !== 1)
      .map((file) => `${file}: the map in ARCHITECTURE.md names it ${timesNamed(file)} times, not once`),
    ...named
      .filter((name) => !files.some((file) => isOf(file, name)))
      .map((name) => `${name}: the map in ARCHITECTURE.md names it, but it does not exist`),
  ];
}
