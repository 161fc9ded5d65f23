/** Environment, mapping and binding on several hosts. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { cpus } from '../rig/machine.ts';
import { ranges } from '../../launcher/text/ranges.ts';
import { environments, promised } from '../rig/rank-environment.ts';

describeIf(clusterUnavailable(), 'ranks on several hosts', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start(3);
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  const say = ['sh', '-c', 'echo "$RANK $(uname -n) $LOCAL_RANK"'];
  const places = async (argv: readonly string[]): Promise<readonly string[]> => {
    const { stdout, stderr, status } = await Command.run(['--tag-output=none', ...argv], { cluster });
    if (status !== 0) throw new Error(`status ${status}: ${stderr}`);
    return stdout
      .trim()
      .split('\n')
      .toSorted((one, other) => Number(one.split(' ')[0]) - Number(other.split(' ')[0]))
      .map((line) => line.split(' ').slice(1).join(':'));
  };

  it('every rank has the documented environment variables with the right values', async () => {
    const ranks = await environments(['-H', 'h1:2,h2:1,h3:2', '--stdin', 'none'], { cluster });
    const where = [
      [0, 0, 2],
      [0, 1, 2],
      [1, 0, 1],
      [2, 0, 2],
      [2, 1, 2],
    ];
    expect(ranks).toHaveLength(where.length);
    for (const [rank, [group, local, localSize]] of where.entries()) {
      const found = ranks[rank] ?? {};
      for (const name of promised) expect(found, name).toHaveProperty(name);
      expect(found).toMatchObject({
        RANK: `${rank}`,
        WORLD_SIZE: '5',
        LOCAL_RANK: `${local}`,
        LOCAL_WORLD_SIZE: `${localSize}`,
        GROUP_RANK: `${group}`,
        GROUP_WORLD_SIZE: '3',
        MASTER_ADDR: cluster.host('h1').address,
        OMPI_COMM_WORLD_SIZE: '5',
        OMPI_COMM_WORLD_RANK: `${rank}`,
        OMPI_COMM_WORLD_LOCAL_SIZE: `${localSize}`,
        OMPI_COMM_WORLD_LOCAL_RANK: `${local}`,
        OMPI_COMM_WORLD_NODE_RANK: `${local}`,
        NCCLRUN_RANK: `${rank}`,
        NCCLRUN_SIZE: '5',
        NCCLRUN_LOCAL_RANK: `${local}`,
      });
    }
    for (const name of ['MASTER_PORT', 'NCCLRUN_JOB_ID', 'NCCLRUN_UNIQUE_ID', 'TORCHELASTIC_RUN_ID'])
      expect(new Set(ranks.map((found) => found[name])).size, name).toBe(1);
    for (const found of ranks) for (const name of Object.keys(found)) expect(name).not.toMatch(/^(SLURM|PMIX)_/u);
  });

  it('two simultaneous jobs get different ports on every host', async () => {
    const argv = ['-H', 'h1:1,h2:1'];
    const jobs = await Promise.all([environments(argv, { cluster }), environments(argv, { cluster })]);
    for (const rank of [0, 1]) {
      for (const name of ['MASTER_PORT', 'NCCL_RAS_ADDR'])
        expect(jobs[0][rank]?.[name], name).not.toBe(jobs[1][rank]?.[name]);
    }
  });

  it('-x exports variables of the launcher, and MASTER_PORT with the given value', async () => {
    const options = ['-x', 'WORD', '-x', 'GROUP_WORD_*', '-x', 'MASTER_PORT=1234'];
    const environment = { WORD: 'here', GROUP_WORD_A: 'a' };
    const ranks = await environments(['-H', 'h1:1,h2:1', ...options], { cluster, environment });
    for (const found of ranks) expect(found).toMatchObject({ WORD: 'here', GROUP_WORD_A: 'a', MASTER_PORT: '1234' });
  });

  it.each<[string[], string[]]>([
    [
      ['-H', 'h1:2,h2:2', '-n', '3'],
      ['h1:0', 'h1:1', 'h2:0'],
    ],
    [
      ['-H', 'h1:2,h2:2', '-n', '3', '--map-by', 'node'],
      ['h1:0', 'h2:0', 'h1:1'],
    ],
    [
      ['-H', 'h1:2,h2:2', '--rank-by', 'node'],
      ['h1:0', 'h2:0', 'h1:1', 'h2:1'],
    ],
    [
      ['-H', 'h1:2,h2:2', '--map-by', 'node', '--rank-by', 'slot'],
      ['h1:0', 'h1:1', 'h2:0', 'h2:1'],
    ],
    [
      ['-H', 'h1,h2,h1', '--map-by', 'seq'],
      ['h1:0', 'h2:0', 'h1:1'],
    ],
    [
      ['-H', 'h1:4,h2:4', '--map-by', 'ppr:1:node'],
      ['h1:0', 'h2:0'],
    ],
    [
      ['-H', 'h1:4,h2:4', '--npernode', '1'],
      ['h1:0', 'h2:0'],
    ],
    [
      ['-H', 'h1:4,h2:4', '--map-by', 'ppr:1:numa', '-n', '2'],
      ['h1:0', 'h2:0'],
    ],
  ])('ncclrun %j places the ranks as expected', async (argv, expected) => {
    expect(await places([...argv, ...say])).toEqual(expected);
  });

  it('each program of a job may have its own hosts and working directory', async () => {
    const second = ['-H', 'h2:2', '--wdir', '/', 'sh', '-c', 'echo "$RANK $(uname -n) $PWD"'];
    expect(await places(['-H', 'h1:1', ...say, ':', ...second])).toEqual(['h1:0', 'h2:/', 'h2:/']);
  });

  it('--report-bindings reports the binding of ranks on every host', async () => {
    const argv = [
      '-H',
      'h1:1,h2:1',
      '--bind-to',
      'core',
      '--report-bindings',
      'grep',
      'Cpus_allowed_list',
      '/proc/self/status',
    ];
    const { stdout, stderr } = await Command.run(['--tag-output=none', ...argv], { cluster });
    expect(stderr).toMatch(/^ncclrun: rank 0 on h1: bound to CPU/mu);
    expect(stderr).toMatch(/^ncclrun: rank 1 on h2: bound to CPU/mu);
    const lists = stdout
      .trim()
      .split('\n')
      .map((line) => line.split(/\s+/u)[1]);
    expect(lists).toHaveLength(2);
    if (cpus.length > 1) for (const list of lists) expect(list).not.toBe(ranges(cpus));
  });
});
