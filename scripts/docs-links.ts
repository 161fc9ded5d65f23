// Writes the first and the last line of every page of docs/: links to the page before and the page after it, in the order of docs/README.md.
// `npm run docs` writes them; test/unit/docs.test.ts checks them.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const docs = fileURLToPath(new URL('../docs', import.meta.url));
const contents = '[contents](README.md)';

/** The pages that README.md lists, in its order. */
export function listedPages(): string[] {
  const index = readFileSync(join(docs, 'README.md'), 'utf8');
  return [...index.matchAll(/^\| \[([\w-]+\.md)\]/gmu)].map(([, name = '']) => name);
}

const link = (page: string) => `[${page}](${page})`;

/** The page's text with the line that it should begin and end with. */
export function withLinks(name: string): string {
  const pages = listedPages();
  const at = pages.indexOf(name);
  const previous = at > 0 ? ` · previous: ${link(pages[at - 1] ?? '')}` : '';
  const next = at + 1 < pages.length ? ` · next: ${link(pages[at + 1] ?? '')}` : '';
  const lines = readFileSync(join(docs, name), 'utf8').split('\n');
  const text = lines.filter((line) => !line.startsWith(contents)).join('\n');
  const links = `${contents}${previous}${next}`;
  return `${links}\n\n${text.trim()}\n\n${links}\n`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const name of listedPages()) writeFileSync(join(docs, name), withLinks(name));
}
