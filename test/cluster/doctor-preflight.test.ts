/** --doctor of a job: it starts no rank where a host is bad, says which, and uses the agents that it has. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { fillSharedMemory } from '../rig/host-faults.ts';

describeIf(clusterUnavailable(), '--doctor', () => {
  let cluster: Cluster;
  let directory = '';
  beforeAll(async () => {
    directory = await mkdtemp(join(repository, 'build/test-preflight-'));
    cluster = await Cluster.start(3);
  });
  afterAll(async () => {
    await cluster[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  });

  const examined = (...words: readonly string[]) =>
    Command.run(['-H', 'h1:1,h2:1,h3:1', '--tag-output=none', ...words, 'hostname'], { cluster });

  it('hosts that are well are looked at and measured by the agents that then start the ranks', async () => {
    const calls = join(directory, 'calls');
    const rsh = join(directory, 'rsh');
    await writeFile(rsh, `#!/bin/sh\necho "$@" | cut -d' ' -f1 >>${calls}\nexec ssh "$@"\n`, { mode: 0o755 });
    const { stdout, stderr, status } = await examined('--doctor', '--rsh', rsh);
    expect(stdout.trim().split('\n').toSorted(), stderr).toEqual(['h1', 'h2', 'h3']);
    expect(stderr).toMatch(/^ncclrun: doctor looked at 3 hosts for \d+\.\d s: \d+ checks ok, /mu);
    expect(status).toBe(0);
    expect((await readFile(calls, 'utf8')).trim().split('\n')).toHaveLength(3);
  });

  it('a job on a bad host is not started, the host is named, and the status is 125', async () => {
    await fillSharedMemory(cluster.host('h2'));
    const { stdout, stderr, status } = await examined('--doctor=passive');
    expect(stderr).toContain('ncclrun: doctor found what makes jobs fail on h2; no rank was started\n');
    expect(stderr).toMatch(/^ {4}shared-memory\.size {2}h2 \/dev\/shm: .* free; next: /mu);
    expect([stdout, status]).toEqual(['', 125]);
    const result = await examined('--doctor=passive', '--json');
    expect(JSON.parse(result.stdout)).toMatchObject({
      reason: 'preflight',
      failures: [{ type: 'preflight', hosts: ['h2'], findings: [{ check: 'shared-memory.size' }] }],
    });
  });

  it('a bad host is left out by --exclude', async () => {
    const { stdout, status } = await examined('--doctor=passive', '--exclude', 'h2');
    expect(stdout.trim().split('\n').toSorted()).toEqual(['h1', 'h3']);
    expect(status).toBe(0);
  });
});
