/** The pages of docs/ lead from one to the next, all are listed, and what they link to exists. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { apiPage } from '../../scripts/api-page.ts';
import { migrationPage } from '../../scripts/migration-page.ts';
import { listedPages, withLinks } from '../../scripts/docs-links.ts';

const root = join(import.meta.dirname, '../..');
const pages = readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md') && name !== 'README.md');

test('docs/README.md lists every page', () => {
  expect(listedPages().toSorted()).toEqual(pages.toSorted());
});

test.each(listedPages())('docs/%s ends with links (npm run docs writes them)', (name) => {
  expect(readFileSync(join(root, 'docs', name), 'utf8')).toBe(withLinks(name));
});

test('docs/api.md matches the types (npm run docs writes it)', () => {
  expect(readFileSync(join(root, 'docs/api.md'), 'utf8')).toBe(apiPage());
});

const designPages = readdirSync(join(root, 'docs/design')).map((name) => `docs/design/${name}`);

test.each(['ARCHITECTURE.md', ...designPages])('the files that %s names exist', (page) => {
  const text = readFileSync(join(root, page), 'utf8');
  const named = text.matchAll(/`((?:launcher|control|worker|native|test|scripts|bin|bench)\/[\w./-]+)`/gu);
  const missing = Array.from(named, ([, path = '']) => path).filter(
    (path) => !['', '.ts', '.h', '.test.ts'].some((extension) => existsSync(join(root, `${path}${extension}`))),
  );
  expect(missing).toEqual([]);
});

test('docs/migration.md has the tables of the code (npm run docs writes them)', () => {
  expect(readFileSync(join(root, 'docs/migration.md'), 'utf8')).toBe(migrationPage());
});

describe('the links of the documents', () => {
  const all = [
    'README.md',
    'ARCHITECTURE.md',
    'CONTRIBUTING.md',
    'examples/README.md',
    'docs/README.md',
    ...designPages,
  ];
  test.each([...all, ...pages.map((name) => `docs/${name}`)])('the links of %s lead to existing files', (name) => {
    const text = readFileSync(join(root, name), 'utf8');
    const targets = [...text.matchAll(/\]\((?!https?:)([^)#\s]+)(?:#[^)]*)?\)/gu)].map(([, target = '']) => target);
    expect(targets.filter((target) => !existsSync(join(root, dirname(name), target)))).toEqual([]);
  });
});
