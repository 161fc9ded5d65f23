/** What becomes of one mutant. */
import { stripVTControlCharacters } from 'node:util';
import { type Calls, callersOf, vitest } from './calls.ts';
import type { Copy, Ended } from './copy.ts';
import { localTestsOf } from './local-tests.ts';
import { type Mutant, mutated } from './mutants.ts';

export type Verdict = 'killed by unit' | 'killed by local' | 'killed by time' | 'survived';

export interface Tested {
  readonly mutant: Mutant;
  readonly verdict: Verdict;
  readonly seconds: number;
  /** The first test that failed, as vitest names it. */
  readonly killer: string;
}

export interface TrialOptions {
  readonly copy: Copy;
  /** Null if unknown: then every test that imports the file runs. */
  readonly calls: readonly Calls[] | null;
  /** Whether end-to-end tests run, too. */
  readonly local: boolean;
}

/** A run may take so long beyond what its tests took without a mutant. */
const UNIT_LIMIT_MS = 180_000;
const TIMES_SLOWER = 5;
const ALL_UNIT_MS = 600_000;
const LOCAL_LIMIT_MS = 600_000;

/** `text`: of the file without the mutant. */
export async function tryMutant(mutant: Mutant, text: string, options: TrialOptions): Promise<Tested> {
  const { copy, local } = options;
  const started = performance.now();
  const tested = (verdict: Verdict, { output }: Ended): Tested => {
    const killer = /FAIL\s+(.*)/u.exec(stripVTControlCharacters(output))?.[1] ?? '';
    return { mutant, verdict, killer, seconds: (performance.now() - started) / 1000 };
  };
  copy.write(mutant.file, mutated(text, mutant));
  try {
    const unit = await runUnit(mutant, options);
    if (unit.status === null) return tested('killed by time', unit);
    if (unit.status !== 0) return tested('killed by unit', unit);
    if (!local) return tested('survived', unit);
    const ended = await runLocal(mutant, copy);
    if (ended.status === null) return tested('killed by time', ended);
    return tested(ended.status === 0 ? 'survived' : 'killed by local', ended);
  } finally {
    copy.write(mutant.file, text);
  }
}

async function runUnit(mutant: Mutant, { copy, calls }: TrialOptions): Promise<Ended> {
  const argv = [...related(mutant.file), '--project', 'unit'];
  if (calls === null) return await copy.node(argv, UNIT_LIMIT_MS + ALL_UNIT_MS);
  const callers = callersOf(mutant, calls);
  if (callers.length === 0) return { status: 0, output: '' };
  const usual = callers.reduce((sum, { milliseconds }) => sum + milliseconds, 0);
  const list = { NCCLRUN_MUTATION_TESTS: callers.map(({ test }) => test).join(',') };
  return await copy.node(argv, UNIT_LIMIT_MS + TIMES_SLOWER * usual, list);
}

/** End-to-end tests run what is built: bundles of launcher and agent, and modules that programs import. */
async function runLocal({ file }: Mutant, copy: Copy): Promise<Ended> {
  const build = "const { bundle } = await import('./scripts/bundle.mjs'); await bundle(process.cwd());";
  const built = await copy.node(['--input-type=module', '--eval', build], UNIT_LIMIT_MS);
  if (built.status !== 0) throw new Error(`scripts/bundle.mjs: ${built.output}`);
  // Complaints about the types of other files hinder nobody: the compiler writes the modules nevertheless.
  const modules = ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json'];
  if (!file.startsWith('launcher/')) await copy.node(modules, UNIT_LIMIT_MS);
  const filters = localTestsOf(file);
  try {
    return await copy.node([...vitest, 'run', '--bail', '1', '--project', 'local', ...filters], LOCAL_LIMIT_MS, {
      NCCLRUN_MUTATION_TESTS: filters.join(','),
    });
  } finally {
    copy.restoreModules();
  }
}

function related(file: string): string[] {
  return [...vitest, 'related', file, '--run', '--bail', '1', '--passWithNoTests'];
}
