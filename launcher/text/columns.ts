import { printableLine } from '../../control/printable.ts';

/** Rows under each other; a column whose cells are numbers is set to the right. */
export function columns(rows: readonly (readonly string[])[]): string {
  const count = rows.reduce((max, row) => Math.max(max, row.length), 0);
  const widths = Array.from({ length: count }, (_, column) =>
    rows.reduce((widest, row) => Math.max(widest, (row[column] ?? '').length), 0),
  );
  const isNumeric = widths.map((_, column) => rows.slice(1).every((row) => /^[0-9.]*( %)?$/u.test(row[column] ?? '')));
  return rows
    .map((row) =>
      widths
        .map((width, column) => {
          const cell = row[column] ?? '';
          return isNumeric[column] === true ? cell.padStart(width) : cell.padEnd(width);
        })
        .join('  ')
        .trimEnd(),
    )
    .map((line) => `${printableLine(line)}\n`)
    .join('');
}
