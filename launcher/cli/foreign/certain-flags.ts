/** The options that other launchers have for certain values only; those of them that we have too are ours for all other values. */
import { bareFlag } from '../../model/flags.ts';

/** A start with our own options reads no table of another launcher. A test compares this with the tables. */
const certainFlags: ReadonlySet<string> = new Set(
  (
    'mca gmca prtemca pmixmca omca bind-to map-by rank-by rtos runtime-options genv env bootstrap launcher rmk s g ' +
    'gpus-per-proc r x K kill-on-bad-exit mpi cpu-bind m distribution extra-node-info B d output i input export a ' +
    'tasks-per-rs gpu-per-rs b bind launch-distribution l stdio-mode X exit-on-error nproc-per-node node-rank ' +
    'signals-to-handle numa-binding machine-rank gpu-ids H p depth cc cpu-binding e R ngpus t nthreads c check z ' +
    'blocking T G cudagraph agg-iters local-register C report-cputime D device-implementation'
  ).split(' '),
);

/** `word` is an option as typed, with its value or without. */
export function isOfCertainValues(word: string): boolean {
  return certainFlags.has(bareFlag(word.split('=', 1)[0] ?? ''));
}
