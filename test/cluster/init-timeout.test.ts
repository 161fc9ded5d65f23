/** --init-timeout where the ranks are on several hosts. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { compileWithEngine } from '../rig/compile.ts';

describeIf(clusterUnavailable(), '--init-timeout', () => {
  let cluster: Cluster;
  let directory = '';
  let program = '';
  beforeAll(async () => {
    cluster = await Cluster.start(2);
    directory = await mkdtemp(join(repository, 'build/test-init-timeout-'));
    program = await compileWithEngine('test/rig/programs/partial-init.c', directory);
  });
  afterAll(async () => {
    await cluster[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  });

  it('--init-timeout ends the job with 124 and names the missing rank and its host', async () => {
    const options = ['-H', 'h1:2,h2:1', '--init-timeout', '1.5', program, 'job'];
    const { exitCode, failures } = await Command.result(options, { cluster });
    expect({ exitCode, failures }).toMatchObject({
      exitCode: 124,
      failures: [{ type: 'init-timeout', seconds: 1.5, missing: ['rank 2 (h2)'] }],
    });
  });

  it('--init-timeout applies to a communicator inside one host', async () => {
    const options = ['-H', 'h1:2,h2:1', '--init-timeout', '1.5', program];
    const { exitCode, failures } = await Command.result(options, { cluster });
    expect({ exitCode, failures }).toMatchObject({
      exitCode: 124,
      failures: [{ type: 'init-timeout', missing: ['rank 1'] }],
    });
  });
});
