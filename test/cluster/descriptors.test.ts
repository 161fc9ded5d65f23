/** Processes of ours that can open nothing any more, while a job goes on. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { compileWithEngine } from '../rig/compile.ts';
import { agentOn, exhaustDescriptors } from '../rig/faults.ts';
import { parseResult } from '../rig/result.ts';
import { Steering } from '../rig/steering.ts';

describeIf(clusterUnavailable(), 'processes without free file descriptors', () => {
  it('a launcher without free descriptors still joins ranks that have started', async () => {
    await using cluster = await Cluster.start(2);
    await using steering = await Steering.open();
    const argv = ['-H', 'h1:1,h2:1', ...steering.options, steering.program];
    await using command = Command.start(argv, { cluster });
    const ranks = await steering.ranks(2);
    await exhaustDescriptors(command.pid);
    await Promise.all(ranks.map((rank) => rank.init()));
    expect(await Promise.all(ranks.map((rank) => rank.allReduce(1)))).toEqual([[2], [2]]);
    await Promise.all(ranks.map((rank) => rank.tell({ do: 'close' })));
    for (const rank of ranks) void rank.exit(0);
    expect((await command.outcome).status).toBe(0);
  });

  // From about 28 on there can be enough, by how many are open at the same moment.
  it.each([6, 7, 8, 12, 16, 18, 20, 22, 24])(
    'a rank that may open %i files ends with that limit and what raises it',
    async (limit) => {
      await using cluster = await Cluster.start(2);
      const directory = await mkdtemp(join(repository, 'build/test-descriptors-'));
      try {
        const program = await compileWithEngine('test/rig/programs/stream.c', directory);
        await writeFile(join(directory, 'enough'), '');
        const script = `test "$RANK" != 5 || ulimit -n ${limit}; exec "$@"`;
        const words = ['-H', 'h1:4,h2:4', 'sh', '-c', script, 'sh', program, directory];
        const { status, stderr } = await Command.run(words, { cluster });
        expect(status).toBe(1);
        expect(stderr).toMatch(
          new RegExp(`\\[5\\] .*Too many open files: this process may open ${limit} files.*; raise it with ulimit -n`),
        );
        for (const host of cluster.hosts) await host.empty();
      } finally {
        await rm(directory, { recursive: true });
      }
    },
  );

  it('the verdict names the host whose agent cannot create a host segment', async () => {
    await using cluster = await Cluster.start(2);
    await using steering = await Steering.open();
    const argv = ['--json', '-v', '-H', 'h1:1,h2:1', ...steering.options, steering.program];
    await using command = Command.start(argv, { cluster });
    const ranks = await steering.ranks(2);
    await Promise.all(ranks.map((rank) => rank.init()));
    await exhaustDescriptors(agentOn(cluster, 'h2'));
    const splits = ranks.map((rank) => rank.tell({ do: 'split' }));
    await expect(Promise.allSettled(splits)).resolves.toMatchObject([{ status: 'rejected' }, { status: 'rejected' }]);
    for (const [rank, one] of ranks.entries()) {
      await one.exit(1);
      await command.line('stderr', new RegExp(`rank ${rank} on h\\d: ended`));
    }
    expect(parseResult((await command.outcome).stdout).failures[0]).toMatchObject({ host: 'h2', rank: 1 });
  });

  it('the job fails and names the host whose agent cannot serve its ranks', async () => {
    await using cluster = await Cluster.start(2);
    await using steering = await Steering.open();
    const argv = ['--json', '-H', 'h1:1,h2:1', ...steering.options, steering.program];
    await using command = Command.start(argv, { cluster });
    const ranks = await steering.ranks(2);
    await exhaustDescriptors(agentOn(cluster, 'h2'));
    for (const rank of ranks) rank.init().catch(() => {});
    const { status, stdout } = await command.outcome;
    expect(status).toBe(125);
    expect(parseResult(stdout).failures[0]).toMatchObject({ type: 'agent', host: 'h2' });
    for (const host of cluster.hosts) await host.empty();
  });
});
