/** NCCL_TOPO_FILE and NCCL_TOPO_DUMP_FILE as a host's agent understands them. */
import { describe, expect, test } from 'vitest';
import type { OrderedRank, Placement } from '../../control/messages/link.ts';
import { localRanksByGpu, topologyFiles } from '../../worker/agent/topology-files.ts';

const program = (workingDirectory: string, environment: Record<string, string> = {}) => ({
  argv: ['true'],
  workingDirectory,
  workingDirectoryGiven: false,
  environment,
});

function placement(programs: Placement['programs'], ranks: readonly Partial<OrderedRank>[] = []): Placement {
  const usual = { program: 0, stdinPipe: false, interactive: false, mergeStderr: false, cpus: [] };
  const ordered = ranks.map((one, index) => ({ ...usual, rank: index, visibleGpus: null, gpu: null, ...one }));
  return { hostIndex: 0, hostCount: 1, rankCount: ranks.length, programs, ranks: ordered };
}

describe('topologyFiles', () => {
  test.each<[string, Record<string, string>, Record<string, string>, [string | null, string | null] | null]>([
    ['no variables', {}, {}, null],
    ['empty names', { NCCL_TOPO_FILE: '' }, { NCCL_TOPO_DUMP_FILE: '' }, null],
    [
      'variables of the host',
      {},
      { NCCL_TOPO_FILE: '/a.xml', NCCL_TOPO_DUMP_FILE: 'b.xml' },
      ['/a.xml', '/work/b.xml'],
    ],
    [
      'variables of the program',
      { NCCL_TOPO_FILE: 'mine.xml' },
      { NCCL_TOPO_FILE: '/a.xml' },
      ['/work/mine.xml', null],
    ],
    ['a variable that the program clears', { NCCL_TOPO_FILE: '' }, { NCCL_TOPO_FILE: '/a.xml' }, null],
  ])('topologyFiles gives the right paths for %s', (_name, environment, own, expected) => {
    const files = topologyFiles(placement([program('/work', environment)]), own, []);
    expect(files === null ? null : [files.read, files.dump]).toEqual(expected);
  });

  test('topologyFiles takes the environment of the first program, before the one of the host', () => {
    const gpus = [{ name: '0', index: 0, address: '0000:1b:00.0' }];
    const own = { A: 'host', B: 'host', NCCL_TOPO_FILE: '/a.xml' };
    const programs = [program('/one', { B: 'one' }), program('/two', { B: 'two', NCCLRUN_DEVICE: 'host' })];
    expect(topologyFiles(placement(programs), own, gpus)).toMatchObject({
      environment: { ...own, B: 'one' },
      onGpus: true,
    });
    expect(topologyFiles(placement(programs.toReversed()), own, gpus)).toMatchObject({
      environment: { ...own, B: 'two' },
      onGpus: false,
    });
    expect(topologyFiles(placement(programs.toReversed()), {}, gpus)).toBeNull();
  });

  test('topologyFiles takes the first program that names a file', () => {
    const programs = [program('/one'), program('/two', { NCCL_TOPO_DUMP_FILE: 'b.xml' })];
    expect(topologyFiles(placement(programs), {}, [])).toMatchObject({ read: null, dump: '/two/b.xml' });
  });
});

describe('ranksByGpu', () => {
  const gpus = ['0000:1B:00.0', '0000:2b:00.0', '0000:3b:00.0'].map((address, index) => ({
    name: `${index}`,
    index,
    address,
  }));
  type Ranks = readonly Partial<OrderedRank>[];

  test.each<[string, Ranks, Record<string, string>, readonly (readonly [string, number])[]]>([
    [
      'in turn',
      [{ rank: 8 }, { rank: 9 }],
      {},
      [
        ['1b', 8],
        ['2b', 9],
      ],
    ],
    [
      'more than GPUs',
      [{}, {}, {}, {}],
      {},
      [
        ['1b', 0],
        ['2b', 1],
        ['3b', 2],
      ],
    ],
    [
      'dealt',
      [{ gpu: 2 }, { gpu: 0 }],
      {},
      [
        ['3b', 0],
        ['1b', 1],
      ],
    ],
    [
      'isolated',
      [{ visibleGpus: [1], gpu: 1 }, { visibleGpus: [2, 0] }],
      {},
      [
        ['2b', 0],
        ['1b', 1],
      ],
    ],
    ['on the host device', [{}], { NCCLRUN_DEVICE: 'host' }, []],
  ])('ranksByGpu assigns ranks to GPUs as expected: %s', (_name, ranks, environment, expected) => {
    const found = localRanksByGpu(placement([program('/')], ranks), gpus, environment);
    expect(Array.from(found, ([address, rank]) => [address.slice(5, 7), rank])).toEqual(expected);
  });

  test('ranksByGpu is empty without GPUs', () => {
    expect(localRanksByGpu(placement([program('/')], [{}]), [], {}).size).toBe(0);
  });
});
