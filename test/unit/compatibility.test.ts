/** docs/compatibility.md lists the names that the library shows, and says of each what the library does. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

const rows = Array.from(
  read('docs/compatibility.md').matchAll(/^\| ([\d.]+) +\| `(nccl\w+)` +\| ([^|]+?) *\| ([^|]*?) *\|$/gmu),
  ([, since = '', name = '', state = '', note = '']) => ({ since, name, state, note }),
);

test('docs/compatibility.md has a row with the version for every name of the interface', () => {
  const names = read('native/test/interface_names.txt').trim().split('\n');
  expect(rows.map(({ since, name }) => `${since} ${name}`)).toEqual(names);
});

test('the library exports these names with their profiling twins, and no other name of NCCL', () => {
  const listing = execFileSync('nm', ['-D', '--defined-only', join(root, 'build/libnccl.so.2')], { encoding: 'utf8' });
  const shown = Array.from(listing.matchAll(/ (p?nccl[A-Z]\w*)$/gmu), ([, name = '']) => name);
  expect(shown.toSorted()).toEqual(rows.flatMap(({ name }) => [name, `p${name}`]).toSorted());
});

test('the table marks the functions that return ncclInvalidUsage and says why', () => {
  const source = read('native/abi/unavailable.cc');
  const refused = new Set(
    Array.from(source.matchAll(/refuse\("(\w+)"|UNAVAILABLE\((nccl\w+)/gu), ([, one, two]) => one ?? two),
  );
  for (const { name, state, note } of rows) {
    expect(['works', 'host device', '`ncclInvalidUsage`']).toContain(state);
    expect([name, state === '`ncclInvalidUsage`']).toEqual([name, refused.has(name)]);
    if (state === '`ncclInvalidUsage`') expect(note).not.toBe('');
  }
});
