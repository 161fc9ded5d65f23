/** Ranks on several hosts that ncclrun has not started: each host is told how to start them. */
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, type ClusterHost } from '../rig/cluster.ts';
import { compileWithEngine } from '../rig/compile.ts';

describeIf(clusterUnavailable(), 'ranks that ncclrun has not started, on two hosts', () => {
  let cluster: Cluster;
  let program = '';
  beforeAll(async () => {
    cluster = await Cluster.start(2);
    program = await compileWithEngine('test/rig/programs/plain.c', cluster.state);
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  const run = async (host: ClusterHost, before: string, after: string): Promise<string> =>
    host.exec('sh', '-c', `${before} "$0" sum "$1" ${after}`, program, await meeting());
  let ids: Promise<string> | null = null;
  const meeting = (): Promise<string> => (ids ??= mkdtemp(join(cluster.state, 'ids-')));

  it('the engine rejects a unique id that another host made, and suggests ncclrun', async () => {
    const first = cluster.host('h1');
    const pid = await run(first, 'RANK=0 WORLD_SIZE=2', '>/dev/null 2>&1 & echo $!');
    const output = await run(cluster.host('h2'), 'RANK=1 WORLD_SIZE=2', '2>&1 || :');
    expect(output).toMatch(/ = 5: .*made on another host.*Start the program with: ncclrun -H HOST1:N,HOST2:N PROGRAM/);
    await first.exec('kill', '-KILL', pid.trim());
    for (const host of cluster.hosts) await host.empty();
  });

  it('the engine rejects a LOCAL_WORLD_SIZE below WORLD_SIZE, and suggests ncclrun', async () => {
    ids = null;
    const output = await run(cluster.host('h1'), 'RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=1', '2>&1 || :');
    expect(output).toMatch(/ = 5: .*2 ranks, of which 1 is on this host \(LOCAL_WORLD_SIZE\).*ncclrun -H HOST1:N/);
  });
});
