// The tables of docs/migration.md, from those of launcher/cli/foreign. `npm run docs` writes them; test/unit/docs.test.ts checks them.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { toolTable } from '../launcher/cli/foreign/page.ts';
import { foreignTools } from '../launcher/cli/foreign/tables.ts';

const page = join(import.meta.dirname, '../docs/migration.md');

/** The page with its tables as they should be: each stands under the heading with its tool's name. */
export function migrationPage(): string {
  return foreignTools.reduce(
    (text, tool) => {
      const place = new RegExp(`(^## ${tool.name}\\n[^]*?)\\n\\|[^]*?(?=\\n\\n)`, 'mu');
      return text.replace(place, (_all, before: string) => `${before}\n${toolTable(tool)}`);
    },
    readFileSync(page, 'utf8'),
  );
}

if (process.argv[1] === import.meta.filename) writeFileSync(page, migrationPage());
