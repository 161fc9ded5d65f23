/** Which CPUs and which GPU a rank gets. */
import { describe, expect, test } from 'vitest';
import type { HostTopology } from '../../control/messages/topology.ts';
import { allocateHosts } from '../../launcher/allocation/allocate.ts';
import { parseMapBy } from '../../launcher/cli/map-by.ts';
import type { JobRequest } from '../../launcher/model/types.ts';
import { bindRanks } from '../../launcher/mapping/bind.ts';
import { mapRanks } from '../../launcher/mapping/map-ranks.ts';
import { ranges } from '../../launcher/text/ranges.ts';
import { failureFrom } from './failure-from.ts';

const machine = { hostName: 'head', isOwn: () => false, userName: () => 'me', readFile: (content: string) => content };

/** Two NUMA nodes of two cores, each with two threads; a GPU near each, and one that does not say where it is. */
const full: HostTopology = {
  cores: [0, 1, 2, 3].map((core) => ({ cpus: [core, core + 4], numa: core < 2 ? 0 : 1 })),
  gpus: [
    { cpus: [2, 3, 6, 7], numa: 1 },
    { cpus: [], numa: 0 },
    { cpus: [], numa: null },
  ],
};
const withoutGpus: HostTopology = { ...full, gpus: [] };

interface Wish {
  readonly mapBy?: string;
  readonly bindTo: JobRequest['bindTo'];
  readonly ranks?: number;
  readonly oversubscribe?: boolean;
  readonly topology?: HostTopology;
}

function bindings({ mapBy = 'slot', bindTo, ranks = 2, oversubscribe = false, topology = full }: Wish) {
  const allocation = allocateHosts({ hostfile: 'a:8\nb:8', hostList: null }, machine);
  const topologies = new Map(allocation.hosts.map(({ name }) => [name, topology]));
  const programs = [{ argv: ['p'], ranks, ranksPerHost: null }];
  const map = mapRanks(allocation, { ...parseMapBy(mapBy), oversubscribe, rankBy: null, programs }, topologies);
  return map === null ? [] : bindRanks(map, { bindTo, oversubscribe }, topologies);
}

describe('bindRanks', () => {
  test.each<[string, Wish, string[]]>([
    ['nothing', { bindTo: 'none' }, ['', '']],
    ['a core each, with its threads', { bindTo: 'core', ranks: 4 }, ['0,4', '1,5', '2,6', '3,7']],
    ['cores of the hosts in turn', { bindTo: 'core', mapBy: 'node', ranks: 4 }, ['0,4', '0,4', '1,5', '1,5']],
    ['cores of the NUMA nodes', { bindTo: 'core', mapBy: 'numa', ranks: 4 }, ['0,4', '2,6', '1,5', '3,7']],
    ['cores near the GPUs', { bindTo: 'core', mapBy: 'gpu', ranks: 3 }, ['2,6', '0,4', '1,5']],
    ['shared cores', { bindTo: 'core', ranks: 5, oversubscribe: true }, ['0,4', '1,5', '2,6', '3,7', '0,4']],
    ['NUMA nodes', { bindTo: 'numa', mapBy: 'numa', ranks: 3 }, ['0-1,4-5', '2-3,6-7', '0-1,4-5']],
    ['NUMA nodes in equal parts', { bindTo: 'numa', ranks: 4 }, ['0-1,4-5', '0-1,4-5', '2-3,6-7', '2-3,6-7']],
    ['cores or nodes near the GPUs', { bindTo: 'gpu', ranks: 4 }, ['2-3,6-7', '0-1,4-5', '0-7', '2-3,6-7']],
  ])('bindRanks binds ranks to %s', (_name, wish, expected) => {
    expect(bindings(wish).map(({ cpus }) => ranges(cpus))).toEqual(expected);
  });

  test('bindRanks assigns a GPU by local rank and the NUMA node of its CPUs', () => {
    expect(bindings({ bindTo: 'gpu', ranks: 4 }).map(({ numa, gpu }) => [numa, gpu])).toEqual([
      [1, 0],
      [0, 1],
      [null, 2],
      [1, 0],
    ]);
  });
});

test.each<[string, Wish, RegExp]>([
  ['too few cores', { bindTo: 'core', ranks: 5 }, /rank 4 finds no core on a for itself: 4 cores/],
  [
    'too few cores on a NUMA node',
    { bindTo: 'core', mapBy: 'ppr:3:numa', ranks: 6 },
    /rank 2 .* of NUMA node 0 on a .* 2 cores/,
  ],
  ['no GPU', { bindTo: 'gpu', topology: withoutGpus }, /a has no GPU to bind ranks to; use --bind-to core/],
])('bindRanks rejects %s', (_name, wish, message) => {
  const failure = failureFrom(() => bindings(wish));
  expect(failure.type === 'allocation' ? `${failure.message}; ${failure.remedy ?? ''}` : failure).toMatch(message);
});
