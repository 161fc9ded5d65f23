/** A rank that waits for one of another host that left in order, or sends to it, is told. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, repository } from '../rig/cluster.ts';
import { compileWithEngine } from '../rig/compile.ts';
import { callLeft, callsOnLeft } from '../rig/left-peer.ts';
import { sample } from '../rig/whole.ts';

describeIf(clusterUnavailable(), 'a rank of another host that has left in order', () => {
  let cluster: Cluster;
  let directory = '';
  let program = '';
  beforeAll(async () => {
    cluster = await Cluster.start(2);
    directory = await mkdtemp(join(repository, 'build/test-left-'));
    program = await compileWithEngine('test/rig/programs/left-peer.c', directory);
  });
  afterAll(async () => {
    await cluster[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  });

  it.each(sample(callsOnLeft, 3))('%s reports ncclInvalidUsage for the rank that left', async (call) => {
    for (const before of ['never', 'before'] as const)
      await callLeft(program, call, before, 2, ['-H', 'h1:1,h2:1'], cluster);
  });

  it.each(sample(['receive', 'send', 'allReduce', 'broadcast'], 2))(
    '%s on ranks of both hosts reports ncclInvalidUsage on every remaining rank',
    async (call) => {
      for (const before of ['never', 'before'] as const)
        await callLeft(program, call, before, 3, ['-H', 'h1:1,h2:2'], cluster);
    },
  );
});
