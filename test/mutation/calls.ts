/** Which unit tests call which functions, so that a mutant meets only the tests that can notice it. */
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import type { Copy } from './copy.ts';
import type { Mutant } from './mutants.ts';

/** What record-calls.ts writes down for a test file. */
const callsSchema = v.object({
  test: v.string(),
  milliseconds: v.number(),
  /** By file: names of the functions that ran. */
  functions: v.record(v.string(), v.array(v.string())),
});
export type Calls = v.InferOutput<typeof callsSchema>;

/** Longer than any machine takes for all unit tests. */
const LIMIT_MS = 1_800_000;

/** Recorded now, or by an earlier run in `file`, which is good as long as calls between functions are much the same. */
export async function callsOf(copy: Copy, file: string | null): Promise<Calls[]> {
  if (file !== null && existsSync(file)) {
    return v.parse(v.array(callsSchema), JSON.parse(readFileSync(file, 'utf8')));
  }
  const calls = await recordCalls(copy);
  if (file !== null) writeFileSync(file, JSON.stringify(calls));
  return calls;
}

/** Runs all unit tests on the unchanged code, which they must pass. */
async function recordCalls(copy: Copy): Promise<Calls[]> {
  const directory = join(copy.root, 'build/calls');
  mkdirSync(directory, { recursive: true });
  const environment = { NCCLRUN_MUTATION_CALLS: directory };
  const { status, output } = await copy.node([...vitest, 'run', '--project', 'unit'], LIMIT_MS, environment);
  if (status !== 0) throw new Error(`the unit tests fail without any mutant:\n${output.slice(-4000)}`);
  return readdirSync(directory).map((name) =>
    v.parse(callsSchema, JSON.parse(readFileSync(join(directory, name), 'utf8'))),
  );
}

/** Vitest with our configuration, as arguments of Node. */
export const vitest = ['node_modules/vitest/vitest.mjs', '--config', 'test/mutation/vitest.config.ts'] as const;

/**
 * The test files that call the function with the mutant, the quickest first, then those that call another one of its file: a function that runs
 * while its module is loaded counts for the first test file that imports it, but decides what all others see. A module's own code runs
 * whenever something imports it: then all test files, the near ones first.
 */
export function callersOf({ file, inFunction }: Mutant, calls: readonly Calls[]): Calls[] {
  const byTime = calls.toSorted((one, other) => one.milliseconds - other.milliseconds);
  const isNear = ({ functions }: Calls) => functions[file]?.some((name) => name !== '') === true;
  const near = byTime.filter(isNear);
  if (inFunction === null) return [...near, ...byTime.filter((call) => !isNear(call))];
  const isCaller = ({ functions }: Calls) => functions[file]?.includes(inFunction) === true;
  return [...near.filter(isCaller), ...near.filter((call) => !isCaller(call))];
}
