/** The mechanical part of a rule of style: the title of a test is a sentence that is true when the test passes. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const root = join(import.meta.dirname, '..');

/** A call of it() or test(), also behind each(), skipIf() and the like, up to its title. */
const anyTitle =
  /^ *(?:it|test)(?:\(|\.[^]*?\)\()\s*(?:'((?:\\.|[^'\\])*)'|"((?:\\.|[^"\\])*)"|`((?:\\.|[^`\\])*)`)/gmu;
/** A title that stands in a table of one case, for the tests that only a full run includes. */
const titleOfFullRun = /inFull\(\['([^']+)'\]\)/gu;

const faults: readonly (readonly [name: string, pattern: RegExp])[] = [
  ['has fewer than three words', /^\S*(?:\s+\S+)?$/u],
  ['begins with a preposition', /^(?:of|by|with|without|in|on|at|for|from|to)\b/iu],
  ['hides the actor', /\b(?:is|are) (?:told|heard|had)\b/u],
  ['ends with a period', /\.$/u],
];

interface Title {
  readonly file: string;
  readonly title: string;
}

function titlesIn(file: string): Title[] {
  const text = readFileSync(join(root, file), 'utf8');
  const own = Array.from(text.matchAll(anyTitle), ([, one, two, three]) => one ?? two ?? three ?? '');
  const inTables = Array.from(text.matchAll(titleOfFullRun), ([, title = '']) => title);
  return [...own.filter((title) => title !== '%s'), ...inTables].map((title) => ({ file, title }));
}

const titles = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.test.ts'))
  .flatMap(titlesIn);

it('the titles of all tests are found', () => {
  expect(titles.length).toBeGreaterThan(1000);
});

it.each(faults)('no title of a test %s', (_name, pattern) => {
  expect(titles.filter(({ title }) => pattern.test(title))).toEqual([]);
});
