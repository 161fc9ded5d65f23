/** Mutants that no test needs to kill, each with the reason. */
import type { Accepted } from './acceptance.ts';

export const accepted: readonly Accepted[] = [
  {
    file: 'control/link/stream-link.ts',
    source: 'if (this.#closed || this.#ending || !this.#writable.writable) return;',
    change: '|| -> &&',
    reason: 'Equivalent: a link that ends or has closed has ended its stream, which is not writable any more.',
  },
  {
    file: 'control/topology/read-xml.ts',
    source: 'if (xml.length > MAX_CHARACTERS) {',
    change: '> -> >=',
    reason: 'One character more or less of 16 million: no topology has a fraction of that.',
  },
  {
    file: 'launcher/allocation/managed/slurm.ts',
    source: 'if (sum > 0) return sum;',
    change: '> -> >=',
    reason: 'Equivalent: there is a word at least, and a word that states 0 GPUs or none is refused before.',
  },
  {
    file: 'launcher/remote/without-script.ts',
    source:
      'const runs = new Set(Array.from({ length: Math.max(0, ours.length - RUN + 1) }, (_, at) => ours.slice(at, at + RUN)));',
    change: '1 -> 2',
    reason: 'Equivalent: the additional run at the end is shorter than RUN, and no run of a line equals it.',
  },
  {
    file: 'launcher/report/lane.ts',
    source: 'if (this.#heldBytes <= heldLimit) resolve();',
    change: '<= -> <',
    reason: 'One byte more or less of 16 MiB that a lane holds for a rank that is not finished with its line.',
  },
];
