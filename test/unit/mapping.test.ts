/** --map-by and --rank-by, several programs, and what depends on what hosts have. */
import { describe, expect, test } from 'vitest';
import type { HostTopology } from '../../control/messages/topology.ts';
import { allocateHosts } from '../../launcher/allocation/allocate.ts';
import { withDetectedSlots } from '../../launcher/allocation/detected.ts';
import { parseMapBy } from '../../launcher/cli/map-by.ts';
import { mapRanks, type MappingRequest } from '../../launcher/mapping/map-ranks.ts';
import { failureFrom } from './failure-from.ts';

const machine = { hostName: 'head', isOwn: () => false, userName: () => 'me', readFile: (content: string) => content };

/** The allocation of a hostfile's content; `/` stands for a newline. */
const allocationOf = (content: string) =>
  allocateHosts({ hostfile: content.replaceAll('/', '\n'), hostList: null }, machine);

/** Hosts with two NUMA nodes of two cores and a GPU near each, but for `c`, which has no GPU, and `l`, which has one of four. */
function topology(name: string): HostTopology {
  const cores = [0, 1, 2, 3].map((cpu) => ({ cpus: [cpu], numa: cpu < 2 ? 0 : 1 }));
  const near = name === 'c' ? [] : name === 'l' ? [0] : [0, 1];
  return { cores, gpus: near.map((numa) => ({ numa, cpus: numa === 0 ? [0, 1] : [2, 3] })) };
}

interface Wish {
  readonly mapBy?: string;
  readonly rankBy?: MappingRequest['rankBy'];
  /** `2`, `2/N3` (-n 2 -N 3), `N3`, `` (neither); one for each program. */
  readonly programs?: readonly string[];
  readonly oversubscribe?: boolean;
}

function request({ mapBy = 'slot', rankBy = null, programs = [''], oversubscribe = false }: Wish): MappingRequest {
  const parsed = parseMapBy(mapBy);
  return {
    mapBy: parsed.mapBy,
    rankBy,
    oversubscribe: oversubscribe || parsed.oversubscribe,
    programs: programs.map((text, index) => {
      const [, ranks, perHost] = /^([0-9]*)\/?(?:N([0-9]+|gpu))?$/u.exec(text) ?? [];
      return {
        argv: [`p${index}`],
        ranks: ranks === undefined || ranks === '' ? null : Number(ranks),
        ranksPerHost: perHost === undefined ? null : perHost === 'gpu' ? 'gpu' : Number(perHost),
      };
    }),
  };
}

function mapOf(hostfile: string, wish: Wish) {
  const allocation = allocationOf(hostfile);
  const topologies = new Map(allocation.hosts.map(({ name }) => [name, topology(name)]));
  const facts = allocation.hosts.map(({ name }) => [name, { cores: 4, gpus: topology(name).gpus.length }] as const);
  return mapRanks(withDetectedSlots(allocation, new Map(facts)), request(wish), topologies);
}

/** `a0 a1 b0`: host and local rank by rank; `a0n1` on NUMA node 1, `a0g1` with GPU 1, `a0'1` of program 1. */
function shown(hostfile: string, wish: Wish): string {
  return (mapOf(hostfile, wish)?.ranks ?? [])
    .map(({ host, localRank, numa, gpu, program }) => {
      const object = gpu === null ? (numa === null ? '' : `n${numa}`) : `g${gpu}`;
      return `${mapOf(hostfile, wish)?.hosts[host]?.name}${localRank}${object}${program === 0 ? '' : `'${program}`}`;
    })
    .join(' ');
}

const only = (host: number) => () => new Map([[host, null]]);

describe('distribution of ranks', () => {
  test.each<[string, string, Wish, string]>([
    ['by slot', 'a:2/b:2', { programs: ['3'] }, 'a0 a1 b0'],
    ['by node', 'a:2/b:2', { mapBy: 'node', programs: ['3'] }, 'a0 b0 a1'],
    ['by node, every slot', 'a:1/b:3', { mapBy: 'node' }, 'a0 b0 b1 b2'],
    ['by node, beyond the slots', 'a:1/b:2', { mapBy: 'node:OVERSUBSCRIBE', programs: ['5'] }, 'a0 b0 b1 a1 b2'],
    ['by node with -N', 'a:4/b:4', { mapBy: 'node', programs: ['N2'] }, 'a0 b0 a1 b1'],
    ['by node with -N and -n', 'a:1/b:4', { mapBy: 'node', programs: ['2/N2'] }, 'a0 b0'],
    ['by node, localhost last', 'a:4/localhost', { mapBy: 'node', programs: ['4'] }, 'a0 localhost0 a1 localhost1'],
    ['by numa', 'a:3/b:3', { mapBy: 'numa', programs: ['5'] }, 'a0n0 a1n1 a2n0 b0n0 b1n1'],
    ['by numa with -N', 'a:3/b:3', { mapBy: 'numa', programs: ['N2'] }, 'a0n0 a1n1 b0n0 b1n1'],
    ['by gpu', 'a:4/b:4', { mapBy: 'gpu', programs: ['3'] }, 'a0g0 a1g1 b0g0'],
    ['by gpu, all of them', 'a:4/b:1/c:4/l:1', { mapBy: 'gpu' }, 'a0g0 a1g1 b0g0 l0g0'],
    ['by gpu, shared', 'a:2', { mapBy: 'gpu', programs: ['3'], oversubscribe: true }, 'a0g0 a1g1 a2g0'],
    ['by gpu with -N', 'a:4/b:4', { mapBy: 'gpu', programs: ['N3'] }, 'a0g0 a1g1 a2g0 b0g0 b1g1 b2g0'],
    ['-N gpu', 'a:4/l:4', { programs: ['Ngpu'] }, 'a0g0 a1g1 l0g0'],
    ['ppr node', 'a:4/b:4', { mapBy: 'ppr:2:node' }, 'a0 a1 b0 b1'],
    ['ppr node with -n', 'a:4/b:4', { mapBy: 'ppr:2:node', programs: ['3'] }, 'a0 a1 b0'],
    ['ppr numa', 'a:4', { mapBy: 'ppr:2:numa' }, 'a0n0 a1n0 a2n1 a3n1'],
    ['ppr gpu', 'a:4/l:4', { mapBy: 'ppr:2:gpu' }, 'a0g0 a1g0 a2g1 a3g1 l0g0 l1g0'],
    ['seq', 'a/b/a', { mapBy: 'seq' }, 'a0 b0 a1'],
    ['seq with -n', 'a/b/a', { mapBy: 'seq', programs: ['2'] }, 'a0 b0'],
    ['seq takes no notice of slots', 'a:4/b:1', { mapBy: 'seq' }, 'a0 b0'],
    ['ranked by slot', 'a:2/b:2', { mapBy: 'node', rankBy: 'slot' }, 'a0 a1 b0 b1'],
    ['ranked by slot, node after node', 'a:4', { mapBy: 'numa', rankBy: 'slot' }, 'a0n0 a1n0 a2n1 a3n1'],
    ['ranked by node', 'a:2/b:3', { rankBy: 'node' }, 'a0 b0 a1 b1 b2'],
    ['ranked by numa', 'a:4/b:1', { mapBy: 'ppr:2:numa', rankBy: 'numa', programs: ['4'] }, 'a0n0 a1n1 a2n0 a3n1'],
    ['several programs', 'a:2/b:2', { programs: ['1', '2'] }, "a0 a1'1 b0'1"],
    ['the last takes what is left', 'a:2/b:2', { programs: ['1', ''] }, "a0 a1'1 b0'1 b1'1"],
    ['several programs by node', 'a:2/b:2', { mapBy: 'node', programs: ['1', '2'] }, "a0 a1'1 b0'1"],
    ['several programs with -N', 'a:2/b:2', { programs: ['N1', 'N1'] }, "a0 b0 a1'1 b1'1"],
    ['several programs by numa', 'a:4', { mapBy: 'numa', programs: ['1', '2'] }, "a0n0 a1n1'1 a2n0'1"],
    ['several programs, ppr', 'a:4', { mapBy: 'ppr:1:numa', programs: ['', ''] }, "a0n0 a1n1 a2n0'1 a3n1'1"],
    ['several programs, seq', 'a/b/a', { mapBy: 'seq', programs: ['1', ''] }, "a0 b0'1 a1'1"],
    ['ranked by node, program by program', 'a:2/b:2', { rankBy: 'node', programs: ['1', '2'] }, "a0 a1'1 b0'1"],
  ])('mapRanks distributes the ranks as expected: %s', (_name, hostfile, wish, expected) => {
    expect(shown(hostfile, wish)).toBe(expected);
  });

  test('a program with its own hosts runs only there', () => {
    const allocation = allocationOf('a:2/b:2');
    const map = mapRanks(allocation, request({ programs: ['1', '', '1'] }), null, [only(1), only(1), only(0)]);
    expect(map?.ranks.map(({ host, program }) => [host, program])).toEqual([
      [1, 0],
      [1, 1],
      [0, 2],
    ]);
  });

  test('a program with its own hosts uses the lines of those hosts', () => {
    const wish = request({ mapBy: 'seq', programs: ['1', '', ''] });
    const hosts = [only(1), only(0), only(1)];
    const map = mapRanks(allocationOf('a/b/a/b'), wish, null, hosts);
    expect(map?.ranks.map(({ host, program }) => [host, program])).toEqual([
      [1, 0],
      [0, 1],
      [0, 1],
      [1, 2],
    ]);
  });

  test('mapRanks returns null until it knows the topologies', () => {
    const allocation = allocationOf('a:2');
    for (const mapBy of ['numa', 'gpu', 'ppr:1:gpu']) expect(mapRanks(allocation, request({ mapBy }))).toBeNull();
    expect(mapRanks(allocation, request({ programs: ['Ngpu'] }))).toBeNull();
  });
});

describe('rejected distributions', () => {
  test.each<[string, string, Wish, RegExp]>([
    ['ppr beyond the slots', 'a:1', { mapBy: 'ppr:2:node' }, /2 ranks on a asked for, but it has slots=1/],
    ['-n beyond ppr', 'a:4', { mapBy: 'ppr:1:numa', programs: ['3'] }, /3 ranks asked for.*makes 2/],
    ['more ranks than GPUs', 'a:4', { mapBy: 'gpu', programs: ['3'] }, /--map-by gpu gives each a GPU and there are 2/],
    ['no GPU at all', 'c:4', { mapBy: 'gpu' }, /no host of the job has a GPU/],
    ['no GPU for -N gpu', 'a:4/c:4', { programs: ['Ngpu'] }, /c has no GPU/],
    ['more ranks than lines', 'a/b', { mapBy: 'seq', programs: ['3'] }, /3 ranks asked for, but there are 2 lines/],
    ['nothing left', 'a:2', { programs: ['', ''] }, /no slot is left for p1.*say with -n/],
    ['a second program too large', 'a:2', { programs: ['1', '2'] }, /p1: 2 ranks asked for beside the 1 of .* 2 slots/],
    ['-N twice', 'a:2', { programs: ['N2', 'N1'] }, /3 ranks on a asked for, but it has slots=2/],
  ])('mapRanks rejects %s', (_name, hostfile, wish, message) => {
    const failure = failureFrom(() => mapOf(hostfile, wish));
    expect(failure.type === 'allocation' ? `${failure.message}; ${failure.remedy ?? ''}` : failure).toMatch(message);
  });
});

describe('--map-by', () => {
  test.each([
    ['slot', { by: 'slot' }, false],
    ['NUMA', { by: 'numa' }, false],
    ['ppr:2:gpu', { by: 'ppr', count: 2, object: 'gpu' }, false],
    ['slot:OVERSUBSCRIBE', { by: 'slot' }, true],
    ['ppr:2:node:oversubscribe', { by: 'ppr', count: 2, object: 'node' }, true],
    ['node:NOOVERSUBSCRIBE', { by: 'node' }, false],
  ] as const)('parseMapBy accepts "%s"', (text, mapBy, oversubscribe) => {
    expect(parseMapBy(text)).toEqual({ mapBy, oversubscribe });
  });

  test.each([
    ['socket', /"socket" is not known here.*did you mean numa/],
    ['nuam', /did you mean numa/],
    ['rankfile', /known: slot, node/],
    ['node:PE=2', /modifier "pe=2" is not supported.*--bind-to core/],
    ['ppr:2', /write ppr:N:node/],
    ['ppr:0:node', /write ppr:N:node/],
    ['ppr:2:socket', /for socket: numa/],
    ['', /known: slot/],
  ])('parseMapBy rejects "%s"', (text, message) => {
    const failure = failureFrom(() => parseMapBy(text));
    expect(failure.type === 'usage' ? `${failure.message}; ${failure.remedy ?? ''}` : failure).toMatch(message);
  });
});
