import { Command } from '../../test/rig/command.ts';
import type { Figure } from '../figure.ts';
import { medianOf } from '../measure.ts';

const RANKS = 64;

/** Every rank of a communicator splits off alone: what the slowest rank waited. */
export const split: Figure = {
  name: 'split',
  title: `ncclCommSplit of ${RANKS} ranks into as many communicators, slowest rank`,
  unavailable: () => null,
  async *run({ programs, samples }) {
    const program = await programs.withEngine('split');
    const ours = await medianOf(samples, async () => {
      const { status, stdout } = await Command.run(['-n', String(RANKS), '--oversubscribe', program]);
      const milliseconds = Number(/(\d+\.\d)$/m.exec(stdout)?.[1]);
      return status === 0 && Number.isFinite(milliseconds) ? milliseconds : null;
    });
    yield { what: `n=${RANKS}`, unit: 'ms', ours, peers: {}, goal: { kind: 'at-most', bound: 500 } };
  },
};
