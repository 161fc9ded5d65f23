/** The mutation run's own parts: what it changes, what it draws, and its list of mutants that may live. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { type Accepted, isAccepted, staleEntries } from '../mutation/acceptance.ts';
import { accepted } from '../mutation/accepted.ts';
import { type Calls, callersOf } from '../mutation/calls.ts';
import { drawMutants } from '../mutation/campaign.ts';
import { Compiler } from '../mutation/compiler.ts';
import { localTestsOf, namedLocalTests } from '../mutation/local-tests.ts';
import { describeMutant, mutated, type Mutant } from '../mutation/mutants.ts';
import { repository } from '../rig/cluster.ts';

const text = `export function place(index: number, names: readonly string[], strict: true | boolean): number | null {
  if (index < 0 || !strict) return null;
  const [last = 4] = [names.length - 1];
  const none = [names[index]?.length ?? -1, names.at(2000) ?? -1, -1];
  return index === last ? 7 : (names[index] ?? '').length + Number(names.at(1000) ?? 0) + none.indexOf(-4);
}
`;
const root = realpathSync(mkdtempSync(join(tmpdir(), 'ncclrun-mutation-test-')));
mkdirSync(join(root, 'launcher'));
writeFileSync(join(root, 'launcher/place.ts'), text);
const compilerOptions = { strict: true, noUncheckedIndexedAccess: true, lib: ['es2024'], types: [], noEmit: true };
writeFileSync(join(root, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['launcher'] }));
const compiler = new Compiler(root);
const mutants = compiler.mutants();
afterAll(() => {
  compiler[Symbol.dispose]();
  rmSync(root, { recursive: true });
});

function change({ original, replacement }: Mutant): string {
  return `${original} -> ${replacement}`;
}

function only(wanted: string): Mutant {
  const found = mutants.find((mutant) => change(mutant) === wanted);
  if (found === undefined) throw new Error(`no mutant ${wanted}`);
  return found;
}

function draw(seed: number, count: number): string[] {
  return drawMutants(mutants, { seed, count }, () => true).map(change);
}

function calls(test: string, milliseconds: number, names: string[]): Calls {
  return { test, milliseconds, functions: { 'launcher/place.ts': names } };
}

describe('the mutants of a file', () => {
  it('the mutants change operators, conditions, numbers, lengths and early returns, but no types or fallbacks', () => {
    expect(mutants.map((mutant) => `${mutant.line} ${change(mutant)}`)).toEqual([
      '2 || -> &&',
      '2 < -> <=',
      '2 < -> >=',
      '2 0 -> 1',
      '2 !strict -> strict',
      '2 return null; -> ;',
      '3 names.length -> (names.length - 1)',
      '3 1 -> 2',
      '4 names[index]?.length -> (names[index]?.length - 1)',
      '4 1 -> 2',
      '5 === -> !==',
      '5 7 -> 8',
      "5 (names[index] ?? '').length -> ((names[index] ?? '').length - 1)",
      '5 4 -> 5',
    ]);
  });

  it('a mutant names its function and its line of the source', () => {
    const mutant = only('7 -> 8');
    expect(mutant.inFunction).toBe('place');
    expect(describeMutant(mutant)).toBe(`launcher/place.ts:5: 7 -> 8    in: ${mutant.source}`);
    expect(mutated(text, mutant)).toBe(text.replace('7', '8'));
  });

  it('a mutant counts only if the compiler accepts it', () => {
    expect(compiler.accepts(only('7 -> 8'))).toBe(true);
    expect(compiler.accepts({ ...only('7 -> 8'), replacement: "'8'" })).toBe(false);
    expect(compiler.accepts(only('7 -> 8'))).toBe(true);
  });
});

describe('the mutants of a run', () => {
  it('equal seeds draw equal mutants, and different seeds draw different ones', () => {
    expect(draw(3, 5)).toEqual(draw(3, 5));
    expect(draw(3, 5)).not.toEqual(draw(4, 5));
  });

  it('a run excludes mutants that do not compile', () => {
    const numbers = drawMutants(mutants, { seed: 3, count: 3 }, ({ original }) => /^\d$/u.test(original));
    expect(numbers.map(change).toSorted()).toEqual(['0 -> 1', '1 -> 2', '7 -> 8']);
  });

  const all = [
    calls('slow', 9, ['', 'place']),
    calls('far', 1, ['']),
    calls('near', 1, ['', 'other']),
    calls('quick', 2, ['', 'place']),
  ];
  const testsOf = (mutant: Mutant) => callersOf(mutant, all).map(({ test }) => test);

  it('a mutant runs against the tests that call its function, the fastest first, and then those near it', () => {
    expect(testsOf(only('7 -> 8'))).toEqual(['quick', 'slow', 'near']);
    expect(testsOf({ ...only('7 -> 8'), inFunction: 'other' })).toEqual(['near', 'quick', 'slow']);
  });

  it('a mutant outside of functions runs against all tests, first those that call a function of its file', () => {
    expect(testsOf({ ...only('7 -> 8'), inFunction: null })).toEqual(['near', 'quick', 'slow', 'far']);
  });

  it('a mutant runs against the end-to-end tests of the longest matching path, and all of them exist', () => {
    expect(localTestsOf('launcher/job/stdin-flow.ts')).toEqual(['test/local/stdin.test.ts']);
    expect(namedLocalTests.filter((test) => !existsSync(join(repository, test)))).toEqual([]);
  });
});

const linesOf = (file: string): string[] => readFileSync(join(repository, file), 'utf8').split('\n');
const isGone = ({ file, source }: Accepted): boolean => !linesOf(file).some((line) => line.trim() === source);

describe('the list of accepted mutants', () => {
  const mutant = only('7 -> 8');
  const entry = { file: mutant.file, source: mutant.source, reason: 'an example' };

  it('an entry matches by file and source text at any line', () => {
    expect(isAccepted({ ...mutant, line: 99 }, [entry])).toBe(true);
    expect(isAccepted({ ...mutant, file: 'launcher/other.ts' }, [entry])).toBe(false);
    expect(isAccepted(only('< -> <='), [entry])).toBe(false);
  });

  it('an entry may cover only one change of a line', () => {
    expect(isAccepted(mutant, [{ ...entry, change: '7 -> 8' }])).toBe(true);
    expect(isAccepted(only('=== -> !=='), [{ ...entry, change: '7 -> 8' }])).toBe(false);
  });

  it('an entry is stale when its source has changed', () => {
    const gone = { ...entry, source: 'return 7;' };
    expect(staleEntries([entry, gone], mutants)).toEqual([gone]);
  });

  it('every entry names a line that its file has', () => {
    expect(accepted.filter(isGone)).toEqual([]);
  });
});
