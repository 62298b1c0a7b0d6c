/** Formats rows as lines with aligned columns. */
export function table(rows: readonly string[][]): string {
  const widths = rows[0]?.map((_cell, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0))) ?? [];
  return rows
    .map((row) =>
      row
        .map((cell, i) => cell.padEnd(widths[i] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
