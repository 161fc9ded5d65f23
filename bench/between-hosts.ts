/**
 * Predicted ÷ measured times between hosts.
 *
 *   node bench/between-hosts.ts             # of the times that the model's constants are from
 *   node bench/between-hosts.ts TABLE.json  # of a table that ncclrun tune has measured between hosts
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { compared, ratiosText } from './predicted-times.ts';
import { parseTable } from '../control/planner/measured/table.ts';
import { timesOfTable, timesOfTsv } from './predicted-times.ts';

function main(file: string | undefined): void {
  const fitted = join(import.meta.dirname, '../test/unit/fixtures/between-hosts.tsv');
  const times =
    file === undefined
      ? timesOfTsv(readFileSync(fitted, 'utf8'))
      : timesOfTable(parseTable(readFileSync(file, 'utf8')));
  process.stdout.write(ratiosText(compared(times)));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) main(process.argv[2]);
