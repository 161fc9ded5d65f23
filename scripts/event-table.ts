/** The table of docs/events.md, from the schema. `npm run docs` writes it there. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventSchema } from '../launcher/report/event-schema.ts';

const page = join(import.meta.dirname, '../docs/events.md');

export function eventTable(): string {
  const rows = Object.entries(eventSchema).map(([type, { when, fields }]) => {
    const list = Object.entries(fields).map(([name, kind]) => `\`${name}\`: ${kind}`);
    return [`\`${type}\``, when, list.join(', ')];
  });
  const all = [['`type`', 'when', 'fields'], ...rows];
  const widths = [0, 1, 2].map((column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, index) => cell.padEnd(widths[index] ?? 0)).join(' | ')} |`;
  const rule = `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`;
  return [line(['`type`', 'when', 'fields']), rule, ...rows.map(line)].join('\n');
}

/** The page with the table as it should be. */
export function eventPage(): string {
  const text = readFileSync(page, 'utf8');
  return text.replace(/^\| `type`[^]*?(?=\n\n)/mu, () => eventTable());
}

if (process.argv[1] === import.meta.filename) writeFileSync(page, eventPage());
