/**
 * Paths, channels and neighbours of machines, compared with recorded ones: a change of the planner shows what it changes. After a deliberate change
 * `npx vitest run --project unit recorded -u` records the new ones.
 */
import { expect, it } from 'vitest';
import { Cluster } from '../../control/planner/cluster/cluster.ts';
import { shapeOf } from '../../control/planner/cluster/host-shape.ts';
import { buildMachine } from '../../control/planner/machine/build.ts';
import { MachineRoutes } from '../../control/planner/machine/routes.ts';
import type { Element } from '../../control/topology/element.ts';
import { bridgedGpus } from '../rig/bridged-gpus.ts';
import { crossedGpus } from '../rig/crossed-gpus.ts';
import { eightGpus } from '../rig/eight-gpus.ts';
import { clusterText, routesText, shapeText } from '../rig/plan-text.ts';
import { seededRandom } from '../rig/random.ts';
import { randomTopology } from '../rig/random-topology.ts';
import { ownMachine } from '../rig/topologies.ts';

const pairs = {
  sockets: 2,
  gpusPerSocket: 4,
  sm: 80,
  modelid: 85,
  count: 4,
  bridges: [
    [0, 1],
    [2, 3],
    [4, 5],
    [6, 7],
  ],
} as const;

const machines: Readonly<Record<string, () => Element>> = {
  'eight-gpus': eightGpus,
  crossed: () => crossedGpus(true),
  switches: () => ownMachine('switches'),
  superchips: () => ownMachine('superchips'),
  bridged: () => bridgedGpus(pairs),
};

it.each(Object.keys(machines))('the machine %s has the recorded paths and channels', async (name) => {
  const text = Object.entries(machines).flatMap(([key, make]) => (key === name ? describeMachine(make()) : []));
  await expect(`${text.join('\n')}\n`).toMatchFileSnapshot(`fixtures/recorded/${name}.txt`);
});

it.each([0, 1, 2, 3])('the random machines of group %i have the recorded paths and channels', async (group) => {
  const text = Array.from({ length: 12 }, (_, index) => group * 12 + index).flatMap((seed) => [
    `seed ${seed}`,
    ...describeMachine(randomTopology(seededRandom(seed))),
  ]);
  await expect(`${text.join('\n')}\n`).toMatchFileSnapshot(`fixtures/recorded/random-${group}.txt`);
});

function describeMachine(system: Element): string[] {
  const routes = new MachineRoutes(buildMachine(system));
  const count = routes.machine.gpus.length;
  return [
    ...routesText(routes),
    ...[1, 3].flatMap((hosts) => {
      const shape = shapeOf(new MachineRoutes(buildMachine(system)), hosts > 1);
      const ranks = (host: number) => Array.from({ length: count }, (_, gpu) => host * count + gpu);
      const cluster = new Cluster(
        [shape],
        Array.from({ length: hosts }, (_, host) => ({ shape: 0, ranks: ranks(host) })),
      );
      return [`hosts ${hosts}`, ...shapeText(shape), ...(hosts > 1 ? clusterText(cluster) : [])];
    }),
  ];
}
