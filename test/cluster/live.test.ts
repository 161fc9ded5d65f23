/** The line of what is going on, at a terminal that `script` provides. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';

const noScript = spawnSync('script', ['--version']).status === 0 ? null : 'script (util-linux) is not installed';

describeIf(clusterUnavailable() ?? noScript, 'the live line', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start(2);
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  const start = (options: string) => {
    const job = `${join(repository, 'bin/ncclrun')} ${options}`;
    return Command.start(['-qec', job, '/dev/null'], {
      program: 'script',
      cluster,
      environment: { TERM: 'xterm', NO_COLOR: '1' },
    });
  };

  it('the live line names the host that has not started and its phase', async () => {
    await cluster.host('h2').freeze();
    await using command = start('-H localhost:1,h1:1,h2:1 echo done');
    let shown = '';
    await new Promise<void>((resolve) => {
      command.process.stdout?.on('data', (bytes: Buffer) => {
        shown += bytes.toString();
        if (/2\/3 hosts up; waiting for h2 \(ssh [a-z]+, \d+ s\)/u.test(shown)) resolve();
      });
    });
    await cluster.host('h2').thaw();
    const { status, stdout } = await command.outcome;
    expect(status).toBe(0);
    expect(stdout).toContain('\r\u001B[K');
    expect(stdout).toContain('[2] done\r\n');
  });
});
