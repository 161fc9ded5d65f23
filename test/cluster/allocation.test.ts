/** Hosts in the grammars of other tools, down to the ranks that run on them. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';

describeIf(clusterUnavailable(), 'hostfiles and host options of other tools', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start(3);
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  /** The hosts of the ranks, by rank, as the hosts themselves say. */
  async function ranksOn(hostfile: string | null, ...options: string[]): Promise<string> {
    const argv = [...(hostfile === null ? [] : ['--hostfile', '-']), ...options, '--tag-output=none'];
    await using command = Command.start([...argv, 'sh', '-c', 'echo $RANK $(hostname)'], { cluster, stdin: 'pipe' });
    command.process.stdin?.end(hostfile ?? '');
    const { status, stdout, stderr } = await command.outcome;
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => line.split(' '));
    return lines
      .toSorted(([one], [other]) => Number(one) - Number(other))
      .map(([, host]) => host)
      .join(' ');
  }

  it.each<readonly [string, string | null, readonly string[], string]>([
    ['pdsh', null, ['-w', 'h[1-3],-h2', '-N', '1'], 'h1 h3'],
    ['Open MPI', 'h1 slots=1 max_slots=2\nh2 slots = 2\n^h1\nh3 slots=1', [], 'h2 h2 h3'],
    ['MPICH', 'h3:1\nh1:1\nh3:1', [], 'h3 h3 h1'],
    ['Slurm', 'h[1-2],h3 TASKS_PER_NODE=1(x2),2', [], 'h1 h2 h3 h3'],
    ['Horovod', null, ['-H', 'h2:1,h1:2'], 'h2 h1 h1'],
    ['DeepSpeed', 'h1 slots=2\nh2 slots=2\nh3 slots=2', ['--include', 'h3@h1:1'], 'h1 h3 h3'],
    ['DeepSpeed exclusion', 'h1 slots=2\nh2 slots=2\nh3 slots=2', ['--exclude', 'h3@h1:1'], 'h1 h2 h2'],
    ['relative host', 'h1:2\nh2:2\nh3:2', ['-H', '+n2,+e:1'], 'h3 h3 h1 h1'],
    ['IP address', null, ['-H', '10.77.0.[11-12]:1'], 'h1 h2'],
  ])('a job gets the hosts of the %s grammar', async (_name, hostfile, options, expected) => {
    expect(await ranksOn(hostfile, ...options)).toBe(expected);
  });

  it('a host without a slot count gets a rank for each of its cores', async () => {
    const { ranks, outcome } = await Command.result(['-H', 'h[1-2]', 'nproc'], { cluster });
    const cores = Number(outcome.stderr.split('\n')[0]?.split(' ').at(-1));
    expect(ranks.map(({ host }) => host)).toEqual(
      ['h1', 'h2'].flatMap((host) => Array.from({ length: cores }, () => host)),
    );
  });
});
