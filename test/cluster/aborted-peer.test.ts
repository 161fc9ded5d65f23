/** ncclCommAbort of a rank on another host concerns only those that wait for it, now or later. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, it } from 'vitest';
import { abortedStates, abortPeer, failForAborted } from '../rig/aborted-peer.ts';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, repository } from '../rig/cluster.ts';
import { compileWithEngine } from '../rig/compile.ts';
import { sample } from '../rig/whole.ts';

describeIf(clusterUnavailable(), 'a rank of another host that aborts', () => {
  let cluster: Cluster;
  let directory = '';
  let program = '';
  beforeAll(async () => {
    cluster = await Cluster.start(3);
    directory = await mkdtemp(join(repository, 'build/test-aborted-'));
    program = await compileWithEngine('test/rig/programs/aborted-peer.c', directory);
  });
  afterAll(async () => {
    await cluster[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  });

  it.each(sample(abortedStates, 2))('only ranks that need the aborting rank fail (%s)', async (state) => {
    for (const hosts of ['h1:1,h2:2', 'h1:1,h2:1,h3:1']) await abortPeer(program, state, ['-H', hosts], cluster);
  });

  it('the verdict blames the rank that aborted and not the rank that failed because of it', async () => {
    await failForAborted(program, ['-H', 'h1:1,h2:2'], cluster);
  });
});
