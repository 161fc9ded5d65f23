/** --engine ncclrun on other hosts: each takes the library of its own installation, or of its copy. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { compileOtherNccl, compileWithLibrary } from '../rig/compile.ts';

describeIf(clusterUnavailable(), '--engine ncclrun on hosts', () => {
  let cluster: Cluster;
  let program = '';
  const environment = { XDG_CACHE_HOME: join(repository, 'build/test-cache') };
  beforeAll(async () => {
    cluster = await Cluster.start(2);
    program = await compileWithLibrary(
      'test/rig/programs/plain.c',
      await compileOtherNccl(cluster.state),
      cluster.state,
    );
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  async function expectSum() {
    const ids = await mkdtemp(join(cluster.state, 'ids-'));
    const argv = ['--engine', 'ncclrun', '-H', 'h1:2,h2:1', '--tag-output=none', program, 'sum', ids];
    const { status, stdout, stderr } = await Command.run(argv, { cluster, environment });
    expect({ status, lines: stdout.trim().split('\n').toSorted() }, stderr).toEqual({
      status: 0,
      lines: ['ok 0', 'ok 1', 'ok 2'],
    });
    await rm(ids, { recursive: true });
  }

  it('every host preloads the library of its own installation', expectSum);

  it('a host without an installation preloads the library of its staged copy', async () => {
    const host = cluster.host('h2');
    await host.hideInstallation();
    const cache = join(cluster.state, 'cache');
    await mkdir(cache);
    await host.useCache(cache);
    await expectSum();
    const argv = ['--engine', 'ncclrun', '-H', 'h2:1', '--tag-output=none', 'sh', '-c', 'echo $LD_PRELOAD'];
    const { stdout } = await Command.run(argv, { cluster, environment });
    expect(stdout).toMatch(/^\/.*\/\.cache\/ncclrun\/[^/]+\/build\/libnccl\.so\.2\n$/);
  });
});
