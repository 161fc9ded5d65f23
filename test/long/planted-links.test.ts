/** Every cable, and every way from one host to the next, is slow once: the verdict names it. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { compileWithEngine } from '../rig/compile.ts';

const HOSTS = ['h1', 'h2', 'h3', 'h4'];
const USUAL = '400mbit';
const SLOW = '50mbit';

describeIf(clusterUnavailable(), 'a slow network between four hosts', () => {
  let cluster: Cluster;
  let directory = '';
  let program = '';
  beforeAll(async () => {
    cluster = await Cluster.start(HOSTS.length);
    directory = await mkdtemp(join(repository, 'build/test-planted-links-'));
    program = await compileWithEngine('test/rig/programs/straggle.c', directory);
  });
  afterAll(async () => {
    await cluster[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  });

  /** What the verdicts of a job say, whose ranks pass a MiB on round a ring again and again. */
  async function named(collective: string): Promise<string[]> {
    const where = ['-H', HOSTS.map((name) => `${name}:1`).join(','), '-x', 'NCCL_ALGO=ring'];
    const words = ['45', '0', '0', '0', String((collective === 'allReduce' ? 1 : 2) * 262_144), collective];
    const { verdicts } = await Command.result([...where, '--straggler-window', '2', program, ...words], { cluster });
    return verdicts.map(({ kind, blamed }) => `${kind} ${blamed.map(({ host }) => host).join(' ')}`);
  }

  const cases = ['allReduce', 'allGather', 'reduceScatter'].flatMap((collective) =>
    HOSTS.map((name, index) => [collective, name, HOSTS[(index + 1) % HOSTS.length] ?? ''] as const),
  );

  it.each(cases)('a job of %s names the cable of %s and its way to %s', async (collective, name, next) => {
    for (const host of HOSTS) await cluster.host(host).rate(USUAL);
    await cluster.host(name).rate(SLOW);
    expect(await named(collective)).toEqual([`slow-nic ${name}`]);
    await cluster.host(name).rate(USUAL);
    await cluster.host(name).rateTo(cluster.host(next), SLOW, USUAL);
    expect(await named(collective)).toEqual([`slow-link ${name} ${next}`]);
  });
});
