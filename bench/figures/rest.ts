import { clusterUnavailable } from '../../test/rig/capability.ts';
import { Cluster } from '../../test/rig/cluster.ts';
import { Command } from '../../test/rig/command.ts';
import type { Figure } from '../figure.ts';
import { medianOf } from '../measure.ts';

/** At most of a core, in percent, and where the ranks are. */
const bounds = { idle: 0.5, waiting: 3 } as const;
const places = { 'one host': ['-H', 'h1:2'], 'two hosts': ['-H', 'h1:1,h2:1'] } as const;

/** What the process of a rank uses while its communicator has nothing to do. */
export const rest: Figure = {
  name: 'rest',
  title: 'a rank between operations, and inside one that another rank is seconds late for; all its threads',
  unavailable: clusterUnavailable,
  async *run({ programs, samples }) {
    const program = await programs.withEngine('rest');
    await using cluster = await Cluster.start(2);
    for (const [place, words] of Object.entries(places)) {
      for (const [state, bound] of Object.entries(bounds)) {
        const ours = await medianOf(samples, async () => {
          const { status, stdout } = await Command.run(['--rsh', 'openssh', ...words, program, state], { cluster });
          return status === 0 ? Number(/(\d+\.\d+)$/m.exec(stdout)?.[1]) : null;
        });
        yield {
          what: `${state}, ${place}`,
          unit: '%',
          ours,
          peers: {},
          goal: { kind: 'at-most', bound },
        };
      }
    }
  },
};
