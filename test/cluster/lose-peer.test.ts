/** kill -9 of a rank in every state of its communicator, across hosts. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, repository } from '../rig/cluster.ts';
import { compileWithEngine } from '../rig/compile.ts';
import { dyingStates, losePeer } from '../rig/lose-peer.ts';

describeIf(clusterUnavailable(), 'kill -9 of a rank on another host', () => {
  let cluster: Cluster;
  let directory = '';
  let program = '';
  beforeAll(async () => {
    cluster = await Cluster.start(2);
    directory = await mkdtemp(join(repository, 'build/test-lose-peer-'));
    program = await compileWithEngine('test/rig/programs/lose-peer.c', directory);
  });
  afterAll(async () => {
    await cluster[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  });

  // The barrier inside a host does not concern the rank of the other one.
  it.each(dyingStates.filter((state) => state !== 'nodebarrier'))(
    'the survivors learn who died and form a new communicator (%s)',
    (state) => losePeer(program, state, ['-H', 'h1:2,h2:1'], 'h2', cluster),
  );
});
