/**
 * The mutation run: node test/mutation/main.ts [--seed N] [--count 200] [--only FILE:LINE|FILE|FOLDER] [--below FOLDER] [--workers 2] [--at-least 85] [--no-local]
 * [--calls FILE] [--verbose]. Changes the code in one place at a time and runs the tests that should notice. Exit status 1 if they notice
 * less than `--at-least` percent. `--below` draws the mutants of that folder alone. `--calls` keeps which tests call which functions for the next run, which takes as long as all unit tests.
 */
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { messageOf } from '../../control/message-of.ts';
import { isAccepted, staleEntries } from './acceptance.ts';
import { accepted } from './accepted.ts';
import { drawMutants, mutantsAt, tryAll } from './campaign.ts';
import { Compiler } from './compiler.ts';
import { type Mutant, describeMutant } from './mutants.ts';
import type { Tested } from './trial.ts';

const checkout = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/u, '');
const text = { type: 'string' } as const;
const flag = { type: 'boolean', default: false } as const;
const options = {
  seed: text,
  count: text,
  only: text,
  below: text,
  workers: text,
  'at-least': text,
  calls: text,
  'no-local': flag,
  verbose: flag,
} as const;

function wholeNumber(given: string | undefined, usual: number, name: string): number {
  const value = given === undefined ? usual : Number(given);
  if (!Number.isSafeInteger(value) || value < 0) throw new Error(`--${name} ${given}: wanted a whole number`);
  return value;
}

/** The mutants to try, and a line about them. */
function chosen(values: { seed?: string; count?: string; only?: string; below?: string }): Mutant[] {
  using compiler = new Compiler(checkout);
  const all = compiler.mutants();
  const stale = staleEntries(accepted, all).map(({ file, source }) => `${file}: ${source}`);
  if (stale.length > 0) throw new Error(`accepted.ts has entries that match no mutant:\n  ${stale.join('\n  ')}`);
  if (values.only !== undefined) {
    const found = mutantsAt(values.only, all, compiler);
    if (found.length === 0) throw new Error(`--only ${values.only}: no mutant that compiles is there`);
    const open = found.filter((mutant) => !isAccepted(mutant, accepted));
    console.log(`${values.only}: ${open.length} mutants; ${found.length - open.length} accepted`);
    return open;
  }
  const seed = wholeNumber(values.seed, Math.floor(Math.random() * 1e9), 'seed');
  const count = wholeNumber(values.count, 200, 'count');
  const { below = '' } = values;
  const there = all.filter(({ file }) => file.startsWith(below));
  const open = there.filter((mutant) => !isAccepted(mutant, accepted));
  console.log(`seed ${seed}: ${count} of ${open.length} mutants; ${there.length - open.length} accepted`);
  return drawMutants(open, { seed, count }, (mutant) => compiler.accepts(mutant));
}

async function main(): Promise<number> {
  const { values } = parseArgs({ options });
  const atLeast = wholeNumber(values['at-least'], 85, 'at-least');
  const workers = Math.max(1, wholeNumber(values.workers, 2, 'workers'));
  const started = performance.now();
  const mutants = chosen(values);
  const tell = ({ mutant, verdict, seconds, killer }: Tested): void => {
    if (verdict === 'survived') console.log(`survived: ${describeMutant(mutant)}`);
    else if (values.verbose)
      console.log(`${verdict} in ${seconds.toFixed(0)} s: ${describeMutant(mutant)}\n  ${killer}`);
  };
  const [local, byCalls, callsFile] = [
    !values['no-local'],
    values.only === undefined || values.calls !== undefined,
    values.calls ?? null,
  ];
  const campaign = { checkout, workers, local, byCalls, callsFile };
  const results = await tryAll(mutants, campaign, tell);
  const number = (wanted: Tested['verdict']) => results.filter(({ verdict }) => verdict === wanted).length;
  const killed = results.length - number('survived');
  const share = results.length === 0 ? 100 : (100 * killed) / results.length;
  const by = `${number('killed by unit')} by unit, ${number('killed by local')} by local, ${number('killed by time')} by time`;
  const minutes = ((performance.now() - started) / 60_000).toFixed(1);
  console.log(`${killed} of ${results.length} killed (${share.toFixed(1)} %): ${by}; ${minutes} min`);
  return share < atLeast ? 1 : 0;
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(`mutation: ${messageOf(error)}`);
  process.exitCode = 2;
}
