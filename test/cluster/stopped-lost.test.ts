/** A job that is stopped by ^Z keeps its leases: whoever loses the launcher meanwhile ends what it has. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { killHard, partsOn } from '../rig/faults.ts';
import { processEntry } from '../rig/processes.ts';
import { until } from '../rig/until.ts';

/** Two leases, and the end of what is left. */
const LEFT_ALONE_MS = 15_000;

const isStopped = (pid: number): boolean => processEntry(pid)?.state === 'T';

describeIf(clusterUnavailable(), 'a job suspended by ^Z', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start(2);
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  async function stoppedJob(shell: string): Promise<Command> {
    const command = Command.start(['-v', '--rsh', shell, '-H', 'h1:1,h2:1', 'sleep', '1000'], { cluster });
    for (const rank of [0, 1]) await command.line('stderr', new RegExp(`^ncclrun: rank ${rank} on \\S+: started`));
    command.signal('SIGTSTP');
    await until('the launcher is stopped', () => isStopped(command.pid), 10_000);
    const ranks = cluster.hosts.flatMap((host) => partsOn(host, 'rank').map(({ pid }) => pid));
    expect(ranks).toHaveLength(2);
    await until('the ranks are stopped', () => ranks.every(isStopped), 10_000);
    return command;
  }

  it.each(['ssh2', 'openssh'])(
    'no process remains on a disconnected host after the launcher is killed (%s)',
    async (shell) => {
      await using command = await stoppedJob(shell);
      const [near, far] = cluster.hosts;
      await far?.cut();
      killHard(command.pid);
      try {
        await near?.empty(LEFT_ALONE_MS);
        await far?.empty(LEFT_ALONE_MS);
      } finally {
        await far?.uncut();
      }
    },
  );

  it('a suspended job resumes where it stood after longer than a lease', async () => {
    await using command = await stoppedJob('ssh2');
    const ranks = cluster.hosts.flatMap((host) => partsOn(host, 'rank').map(({ pid }) => pid));
    const since = performance.now();
    await until('longer than a lease has passed', () => performance.now() - since > 8000, 10_000);
    expect(ranks.every(isStopped)).toBe(true);
    command.signal('SIGCONT');
    await until('the ranks go on', () => ranks.every((pid) => processEntry(pid)?.state === 'S'), 10_000);
    command.signal('SIGTERM');
    expect((await command.outcome).status).toBe(143);
  });
});
