/**
 * Paths, channels and neighbours of machines, compared with recorded ones: a change of the planner shows what it changes. After a deliberate change
 * `npx vitest run --project unit recorded -u` records the new ones.
 */
import { expect, it } from 'vitest';
import { Cluster } from '../../control/planner/cluster/cluster.ts';
import { positionInDoubleTree } from '../../control/planner/cluster/double-tree.ts';
import { shapeOf } from '../../control/planner/cluster/host-shape.ts';
import { buildMachine } from '../../control/planner/machine/build.ts';
import { distance } from '../../control/planner/machine/path.ts';
import { DEFAULT_ROUTES, MachineRoutes } from '../../control/planner/machine/routes.ts';
import type { RouteOptions } from '../../control/planner/machine/routes.ts';
import { type Attempt, ChannelSearch } from '../../control/planner/search/channels.ts';
import { SearchContext } from '../../control/planner/search/context.ts';
import { isOverloaded } from '../../control/planner/verify/link-loads.ts';
import type { Element } from '../../control/topology/element.ts';
import { readXml } from '../../control/topology/read-xml.ts';
import { bridgedGpus } from '../rig/bridged-gpus.ts';
import { crossedGpus } from '../rig/crossed-gpus.ts';
import { eightGpus } from '../rig/eight-gpus.ts';
import { channelText, clusterText, routesText, shapeText } from '../rig/plan-text.ts';
import { powerTopology } from '../rig/power.ts';
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
  power: () => readXml(powerTopology('ppc64', 70), 'power').root,
  'power-like': () => readXml(powerTopology('x86_64', 86), 'power').root,
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

it('hosts of different machines have the recorded neighbours', async () => {
  const pairsOfSeeds = [
    [3, 7],
    [11, 2],
    [20, 21],
    [40, 41],
    [46, 5],
  ] as const;
  const text = pairsOfSeeds.flatMap((seeds) => {
    const shapes = seeds.map((seed) => shapeOf(routesOf(randomTopology(seededRandom(seed))), true));
    let ranks = 0;
    const hosts = [0, 1, 1, 0, 1].map((shape) => {
      const gpus = shapes[shape]?.routes.machine.gpus ?? [];
      return { shape, ranks: gpus.map(() => ranks++) };
    });
    return [`seeds ${seeds.join(' ')}`, ...clusterText(new Cluster(shapes, hosts))];
  });
  await expect(`${text.join('\n')}\n`).toMatchFileSnapshot('fixtures/recorded/mixed.txt');
});

const options: Readonly<Record<string, Partial<RouteOptions>>> = {
  'all peers': { p2pLevel: 'SYS' },
  'no peers': { p2pLevel: 'LOC' },
  'NICs far away': { gpuDirectLevel: 'SYS' },
  'no GPUDirect': { gpuDirectLevel: 'LOC' },
  reads: { gpuDirectRead: true },
  'no reads': { gpuDirectRead: false },
  'not through GPUs': { throughGpus: false },
  'not through other NICs': { throughOtherNics: false },
};

it('variables restrict the paths as recorded', async () => {
  const systems = [1, 5, 10, 23].map((seed) => randomTopology(seededRandom(seed)));
  const text = Object.entries(options).flatMap(([name, changes]) =>
    [...systems, crossedGpus(true)].flatMap((system) => [
      name,
      ...routesText(new MachineRoutes(buildMachine(system), { ...DEFAULT_ROUTES, ...changes })),
    ]),
  );
  await expect(`${text.join('\n')}\n`).toMatchFileSnapshot('fixtures/recorded/route-options.txt');
});

const patterns = ['ring', 'balancedTree', 'splitTree', 'tree', 'collnetDirect'] as const;

it('searches take the recorded steps', async () => {
  const seeds = [0, 1, 4, 6, 8, 13, 17, 22, 29, 33, 38, 44];
  const text = seeds.flatMap((seed) => {
    const context = new SearchContext(routesOf(randomTopology(seededRandom(seed))));
    return patterns.flatMap((pattern) =>
      [true, false].flatMap((acrossHosts) =>
        [3000, 10_000].map((speed) => {
          const attempt: Attempt = {
            pattern,
            acrossHosts,
            inside: speed,
            between: speed / 2,
            distanceInside: distance('SYS'),
            distanceBetween: distance('SYS'),
            sameChannels: seed % 2 === 0,
            crossNic: ([0, 1, 2] as const)[seed % 3] ?? 0,
            bothDirections: !acrossHosts && seed % 4 === 0,
            maxChannels: 6,
          };
          const candidates = context.candidates(attempt.distanceBetween, false);
          const bound = context.bounds.maxChannels(attempt, candidates.usedPorts);
          const { channels, hops, steps, unfinished } = new ChannelSearch(candidates, attempt, bound, 3000).run();
          const copies = acrossHosts ? '' : ` copies ${context.bounds.maxCopies(attempt)}`;
          const found = `${bound} possible${copies}, ${hops} hops, ${steps} steps, ${unfinished ? 'un' : ''}finished`;
          return `${seed} ${pattern} ${acrossHosts ? 'out' : 'in'} ${speed}: ${found}: ${channels.map(channelText).join(' ')}`;
        }),
      ),
    );
  });
  await expect(`${text.join('\n')}\n`).toMatchFileSnapshot('fixtures/recorded/searches.txt');
});

it('double trees have the recorded shapes', async () => {
  const text = [1, 2, 3, 4, 5, 8, 11, 16].map((count) => {
    const positions = Array.from({ length: count }, (_, host) =>
      ([0, 1] as const).map((which) => {
        const { parent, childNumber, children } = positionInDoubleTree(count, host, which);
        return `${parent}.${childNumber}(${children.map(({ position, number }) => `${position}.${number}`).join(' ')})`;
      }),
    );
    return `${count}: ${positions.map((both) => both.join('/')).join(' ')}`;
  });
  await expect(`${text.join('\n')}\n`).toMatchFileSnapshot('fixtures/recorded/double-trees.txt');
});

it('a link is overloaded beyond a thousandth of its bandwidth', () => {
  const [link] = routesOf(eightGpus()).machine.links;
  if (link === undefined) throw new TypeError('the machine has no link');
  const loaded = (share: number): boolean => isOverloaded({ link: { ...link, bandwidth: 1000 }, load: share * 1000 });
  expect([0.5, 1, 1.0005, 1.0015, 1.5].map(loaded)).toEqual([false, false, false, true, true]);
});

function routesOf(system: Element): MachineRoutes {
  return new MachineRoutes(buildMachine(system));
}

function describeMachine(system: Element): string[] {
  const routes = routesOf(system);
  const count = routes.machine.gpus.length;
  const ranks = (host: number) => Array.from({ length: count }, (_, gpu) => host * count + gpu);
  return [
    ...routesText(routes),
    ...[1, 3].flatMap((hosts) => {
      const shape = shapeOf(routesOf(system), hosts > 1);
      const cluster = new Cluster(
        [shape],
        Array.from({ length: hosts }, (_, host) => ({ shape: 0, ranks: ranks(host) })),
      );
      return [`hosts ${hosts}`, ...shapeText(shape), ...(hosts > 1 ? clusterText(cluster) : [])];
    }),
  ];
}
