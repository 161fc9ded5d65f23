/**
 * The fault campaign: npm run test:faults -- [--seed N] [--count 500] [--only KIND,…] [--moment MOMENT,…] [--jobs J] [--verbose]
 * Real jobs on hosts made of namespaces, each struck by a fault. Exit status 1 if any did not end as it should.
 */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { messageOf } from '../../control/message-of.ts';
import { clusterUnavailable } from '../rig/capability.ts';
import { playAll } from './campaign.ts';
import { draw } from './draw.ts';
import { moments } from './kind.ts';
import { kinds } from './kinds.ts';
import { END_MS, type RoundResult } from './round.ts';
import { failureText, table } from './table.ts';

const text = { type: 'string' } as const;
const options = {
  seed: text,
  count: text,
  only: text,
  moment: text,
  jobs: text,
  verbose: { type: 'boolean' },
} as const;
const { values } = saying(() => parseArgs({ options }));

/** What is wrong with the command line, as a sentence; nothing is played then. */
function saying<Result>(read: () => Result): Result {
  try {
    return read();
  } catch (error) {
    console.error(`test:faults: ${messageOf(error)}`);
    return process.exit(2);
  }
}

function whole(given: string | undefined, usual: number, what: string): number {
  const value = given === undefined ? usual : Number(given);
  if (!Number.isSafeInteger(value) || value < 0) throw new Error(`${what} ${given}: wanted a whole number`);
  return value;
}

/** Those of `all` that the list names; all without one. */
function chosen<Item>(list: string | undefined, all: readonly Item[], nameOf: (item: Item) => string): Item[] {
  if (list === undefined) return [...all];
  return list.split(',').map((name) => {
    const found = all.find((item) => nameOf(item) === name);
    if (found === undefined) throw new Error(`${name}: there are ${all.map(nameOf).join(' ')}`);
    return found;
  });
}

function tell(result: RoundResult): void {
  const { draw: drawn, wrongs, endMs, outcome } = result;
  if (wrongs.length > 0) {
    console.log(failureText(result));
    if (values.verbose === true) console.log(outcome?.stderr ?? '');
  } else if (values.verbose === true) console.log(`${drawn.kind.name} ${drawn.moment}: ${(endMs / 1000).toFixed(1)} s`);
}

const unavailable = clusterUnavailable();
const { seed, count, jobs, among, when } = saying(() => {
  if (unavailable !== null) throw new Error(`cannot run here: ${unavailable}`);
  return {
    seed: whole(values.seed, Math.floor(Math.random() * 1e9), '--seed'),
    count: whole(values.count, 500, '--count'),
    jobs: Math.max(1, whole(values.jobs, 2 * availableParallelism(), '--jobs')),
    among: chosen(values.only, kinds, ({ name }) => name),
    when: chosen(values.moment, moments, String),
  };
});
console.log(`seed ${seed}: ${count} rounds, ${jobs} clusters`);
const started = performance.now();
const draws = Array.from({ length: count }, (_, round) => draw(seed + round, among, when));
const results = await playAll(draws, { jobs, endMs: END_MS }, tell);
const failed = results.filter(({ wrongs }) => wrongs.length > 0);
console.log(table(results));
const minutes = ((performance.now() - started) / 60_000).toFixed(1);
console.log(`${results.length - failed.length} passed, ${failed.length} failed in ${minutes} min; seed ${seed}`);
process.exitCode = failed.length > 0 ? 1 : 0;
