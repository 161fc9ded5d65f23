/** The mutants of a run, tried by some workers at once, each in a copy of its own. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { seededRandom, shuffled } from '../rig/random.ts';
import { callsOf } from './calls.ts';
import type { Compiler } from './compiler.ts';
import { Copy } from './copy.ts';
import type { Mutant } from './mutants.ts';
import { type Tested, tryMutant } from './trial.ts';

export interface CampaignOptions {
  readonly checkout: string;
  readonly workers: number;
  readonly local: boolean;
  /** Whether only the tests run that call the function with the mutant; else all that import the file. */
  readonly byCalls: boolean;
  /** Keeps which tests call which functions, or is null. */
  readonly callsFile: string | null;
}

/** The first `count` mutants that compile, in an order that the seed determines. */
export function drawMutants(
  mutants: readonly Mutant[],
  { seed, count }: { readonly seed: number; readonly count: number },
  accepts: (mutant: Mutant) => boolean,
): Mutant[] {
  const drawn: Mutant[] = [];
  for (const mutant of shuffled(mutants, seededRandom(seed))) {
    if (drawn.length >= count) break;
    if (accepts(mutant)) drawn.push(mutant);
  }
  return drawn;
}

/** Those that compile of a line (`FILE:LINE`), a file or a folder. */
export function mutantsAt(place: string, mutants: readonly Mutant[], compiler: Compiler): Mutant[] {
  const folder = place.endsWith('/') ? place : `${place}/`;
  const isThere = ({ file, line }: Mutant) => file === place || `${file}:${line}` === place || file.startsWith(folder);
  return mutants.filter(isThere).filter((mutant) => compiler.accepts(mutant));
}

/** Calls `tell` for each mutant as soon as its verdict is known. */
export async function tryAll(
  mutants: readonly Mutant[],
  { checkout, workers, local, byCalls, callsFile }: CampaignOptions,
  tell: (tested: Tested) => void,
): Promise<Tested[]> {
  using stack = new DisposableStack();
  const copies = Array.from({ length: Math.min(workers, mutants.length) }, () => stack.use(new Copy(checkout)));
  const end = () => {
    stack.dispose();
    process.exit(130);
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, end);
  const [first] = copies;
  if (first === undefined) return [];
  const calls = byCalls ? await callsOf(first, callsFile) : null;
  const rest = mutants.values();
  const results: Tested[] = [];
  const work = async (copy: Copy) => {
    for (const mutant of rest) {
      const text = readFileSync(join(copy.root, mutant.file), 'utf8');
      const tested = await tryMutant(mutant, text, { copy, calls, local });
      results.push(tested);
      tell(tested);
    }
  };
  await Promise.all(copies.map(work));
  return results;
}
