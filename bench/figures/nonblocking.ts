import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { Command } from '../../test/rig/command.ts';
import type { Figure } from '../figure.ts';
import { median } from '../measure.ts';

const ROUNDS = 20;
/** What test/rig/programs/nonblocking.c prints, in its order, and what each may take, in milliseconds. */
const CALLS = [
  ['init', 1],
  ['collective in set-up', 1],
  ['abort in set-up', 100],
  ['collective', 1],
  ['abort in a collective', 100],
] as const;

/** Calls of a non-blocking communicator whose peer does not take part. */
export const nonblocking: Figure = {
  name: 'nonblocking',
  title: 'calls on a non-blocking communicator whose peer does nothing: median and slowest of all',
  unavailable: () => null,
  async *run({ programs, samples }) {
    const program = await programs.ofTests('nonblocking');
    const taken: number[][] = CALLS.map(() => []);
    for (let sample = 0; sample < samples; sample++) {
      const directory = await mkdtemp(join(programs.directory, 'nonblocking-'));
      const { stdout } = await Command.run(['-n', '2', program, directory, String(ROUNDS)]);
      for (const [, line = ''] of stdout.matchAll(/^\[0\] (.*\d) $/gm))
        for (const [place, milliseconds] of line.split(' ').entries()) taken[place]?.push(Number(milliseconds));
    }
    for (const [place, [what, bound]] of CALLS.entries()) {
      const all = taken[place] ?? [];
      yield { what, unit: 'ms', ours: median(all), peers: {}, goal: { kind: 'at-most', bound } };
      // No goal: it has what the scheduler did to one of many calls.
      const slowest = all.length > 0 ? Math.max(...all) : null;
      yield { what: `${what}, slowest`, unit: 'ms', ours: slowest, peers: {}, goal: null };
    }
  },
};
