/** ncclCommSplit where the ranks are on several hosts. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { compileWithEngine } from '../rig/compile.ts';

describeIf(clusterUnavailable(), 'ncclCommSplit', () => {
  let cluster: Cluster;
  let directory = '';
  let program = '';
  beforeAll(async () => {
    cluster = await Cluster.start(2);
    directory = await mkdtemp(join(repository, 'build/test-split-'));
    program = await compileWithEngine('test/rig/programs/split.c', directory);
  });
  afterAll(async () => {
    await cluster[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  });

  it.each(['h1:2,h2:3', 'h1:1,h2:1'])('ncclCommSplit divides the ranks of %s into the right parts', async (hosts) => {
    const { status, stdout, stderr } = await Command.run(['-H', hosts, program], { cluster });
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: expect.stringMatching(/ok\n$/), stderr: '' });
  });
});
