/** What a file exports, another file imports. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect, it } from 'vitest';

const root = join(import.meta.dirname, '../..');
const product = ['launcher', 'control', 'worker', 'page'];
/** What programs import. */
const entrance = 'worker/index.ts';

const sources = new Map(
  [...product, 'test', 'bench', 'scripts'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(ts|mjs)$/.test(name))
      .map((name): [string, string] => [join(folder, name), readFileSync(join(root, folder, name), 'utf8')]),
  ),
);

/** Imported names by file; `*` where all of them may be used. */
function importedNames(): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  const add = (file: string, path: string, name: string): void => {
    const target = normalize(join(dirname(file), path));
    found.set(target, (found.get(target) ?? new Set()).add(name));
  };
  for (const [file, text] of sources) {
    for (const [, names = '', path = ''] of text.matchAll(
      /(?:import|export)\s+(?:type\s+)?(\{[^}]*\}|\*(?:\s+as\s+\w+)?)\s*from\s*'(\.[^']+)'/g,
    )) {
      if (names.startsWith('*')) add(file, path, '*');
      for (const [, name = ''] of names.matchAll(/(?:^\{|,)\s*(?:type\s+)?(\w+)/g)) add(file, path, name);
    }
    for (const [, path = ''] of text.matchAll(/import\(\s*'(\.[^']+)'\s*\)/g)) add(file, path, '*');
  }
  return found;
}

it('every export has an import in another file', () => {
  const imported = importedNames();
  const unused: string[] = [];
  for (const [file, text] of sources) {
    if (!product.some((folder) => file.startsWith(`${folder}/`)) || file === entrance) continue;
    const names = imported.get(file);
    if (names?.has('*') === true) continue;
    const exported = text.matchAll(
      /^export (?:abstract )?(?:async )?(?:const|let|function\*?|class|interface|type|enum) (\w+)/gm,
    );
    for (const [, name = ''] of exported) if (names?.has(name) !== true) unused.push(`${file}: ${name}`);
  }
  expect(unused).toEqual([]);
});
