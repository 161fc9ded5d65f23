import { join } from 'node:path';
import { repository } from '../../test/rig/cluster.ts';
import type { Figure, Goal } from '../figure.ts';
import { interleaved, launchMilliseconds } from '../measure.ts';

// Up to here Open MPI is the measure; beyond, it hangs too often and Hydra is.
const goals: readonly (readonly [number, Goal])[] = [
  [2, { kind: 'ratio', factor: 1, against: ['openmpi'] }],
  [8, { kind: 'ratio', factor: 1, against: ['openmpi'] }],
  [32, { kind: 'ratio', factor: 1, against: ['openmpi'] }],
  [128, { kind: 'ratio', factor: 1.5, against: ['mpich'] }],
];

/** `/bin/true` on this machine: from the start of the command to its end. */
export const launchLocal: Figure = {
  name: 'launch-local',
  title: '/bin/true on this machine, whole command',
  unavailable: () => null,
  async *run({ programs, samples }) {
    for (const [ranks, goal] of goals) {
      const ours = [join(repository, 'bin/ncclrun'), '-n', String(ranks), '/bin/true'];
      const medians = await interleaved(
        [
          { name: 'ours', measure: () => launchMilliseconds(ours) },
          ...programs.peers.map((peer) => ({
            name: peer.name,
            measure: () =>
              launchMilliseconds([...peer.launch(ranks, [], ranks), '/bin/true'], {
                environment: peer.environment,
                limitMs: 3000,
              }),
          })),
        ],
        samples,
      );
      const { ours: mine = null, ...peers } = Object.fromEntries(medians);
      yield { what: `n=${ranks}`, unit: 'ms', ours: mine, peers, goal };
    }
  },
};
