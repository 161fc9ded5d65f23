import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = join(import.meta.dirname, '../..');
/** A folder may import itself and what stands behind it here. */
const allowed: Readonly<Record<string, readonly string[]>> = {
  launcher: ['launcher', 'control'],
  control: ['control'],
  worker: ['worker', 'control'],
  page: ['page', 'launcher'],
};
/** What runs in a browser shares its data's form with the launcher, and nothing else. */
const pageFormat = 'launcher/replay/page-format.ts';
/** The one launcher file that runs the agent in-process. */
const exception = 'launcher/local/host.ts';
/** Packages that compute hosts must not need. */
const launcherOnly = ['yargs', 'ssh2'];

interface Import {
  readonly file: string;
  readonly target: string;
}

/** Of values and of types. */
const anyImport = /(?:from|import)\s*\(?\s*'([^']+)'/g;
const valueImport = /(?:^(?:import|export) (?!type\b)[^;']*?from|import\s*\(?)\s*'([^']+)'/gm;

function importsBelow(folder: string, pattern = anyImport): Import[] {
  const found: Import[] = [];
  for (const entry of readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })) {
    if (!entry.endsWith('.ts')) continue;
    const file = join(folder, entry);
    const source = readFileSync(join(root, file), 'utf8');
    for (const match of source.matchAll(pattern)) {
      const target = match[1] ?? '';
      found.push({ file, target: target.startsWith('.') ? normalize(join(dirname(file), target)) : target });
    }
  }
  return found;
}

describe('imports of the TypeScript code', () => {
  for (const [folder, may] of Object.entries(allowed)) {
    it(`${folder} imports only ${may.join(', ')}`, () => {
      const imports = importsBelow(folder);
      expect(imports.length).toBeGreaterThan(0);
      const wrong = imports.filter(({ file, target }) => {
        const top = relative('.', target).split('/')[0] ?? '';
        const ours = top in allowed || top === 'native' || top === 'test';
        return ours && !may.includes(top) && file !== exception;
      });
      expect(wrong).toEqual([]);
    });
  }

  it('the page imports only itself and the form of its data', () => {
    const others = importsBelow('page').filter(({ target }) => !target.startsWith('page/') && target !== pageFormat);
    expect(others).toEqual([]);
    expect(readFileSync(join(root, pageFormat), 'utf8')).not.toMatch(anyImport);
  });

  it('worker and control import no launcher package', () => {
    const wrong = [...importsBelow('worker'), ...importsBelow('control')].filter(({ target }) =>
      launcherOnly.includes(target),
    );
    expect(wrong).toEqual([]);
  });

  it('no folders import each other in a circle except for types', () => {
    const files = Object.keys(allowed).flatMap((folder) => importsBelow(folder, valueImport));
    const folders = new Map<string, Set<string>>();
    for (const { file, target } of files) {
      if (!target.endsWith('.ts') || dirname(file) === dirname(target)) continue;
      folders.set(dirname(file), (folders.get(dirname(file)) ?? new Set()).add(dirname(target)));
    }
    expect(folders.size).toBeGreaterThan(30);
    // Without circles, folders that import none of the rest can be taken away until none is left.
    for (let before = -1; before !== folders.size; ) {
      before = folders.size;
      for (const [folder, targets] of folders)
        if ([...targets].every((target) => !folders.has(target))) folders.delete(folder);
    }
    expect([...folders]).toEqual([]);
  });
});
