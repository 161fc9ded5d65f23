/**
 * Programs of MPICH on several hosts. They leave without MPI_Finalize, which hangs at times over TCP in MPICH 4.0 with UCX 1.13, under MPICH's launcher
 * too (UCX's issue 8738, "TCP transport hangs during cleanup"); test/local/mpi.test.ts calls it.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { compileMpi, compileMpiWithEngine, mpichUnavailable, ncclLines, tourLines } from '../rig/mpi.ts';

describeIf(clusterUnavailable() ?? mpichUnavailable(), 'MPI programs on several hosts', () => {
  let cluster: Cluster;
  let directory = '';
  let tour = '';
  let nccl = '';
  beforeAll(async () => {
    cluster = await Cluster.start(3);
    directory = await mkdtemp(join(repository, 'build/test-mpi-'));
    tour = await compileMpi('test/rig/programs/mpi-tour.c', directory);
    nccl = await compileMpiWithEngine('test/rig/programs/mpi-nccl.c', directory);
  });
  afterAll(async () => {
    await cluster[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  });
  const run = (hosts: string, ...words: readonly string[]) =>
    Command.run(['--tag-output=none', '-H', hosts, ...words], { cluster });

  it.each([
    ['h1:2,h2:2,h3:2', [], [0, 0, 1, 1, 2, 2]],
    ['h1:2,h2:2,h3:2', ['--map-by', 'node'], [0, 1, 2, 0, 1, 2]],
    ['h1:3,h2:1,h3:2', [], [0, 0, 0, 1, 2, 2]],
  ] as const)('an MPI program on %s with %j knows its ranks and their hosts', async (hosts, words, rankHosts) => {
    const { status, stdout, stderr } = await run(hosts, ...words, tour, 'unfinished');
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout.trim().split('\n').toSorted()).toEqual(tourLines(rankHosts));
  });

  it.each([
    ['h1:2,h2:2', [0, 0, 1, 1]],
    ['h1:1,h2:2', [0, 1, 1]],
  ] as const)('MPI passes on the unique id, and NCCL sums over the ranks of %s', async (hosts, rankHosts) => {
    const { status, stdout, stderr } = await run(hosts, nccl, 'unfinished');
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout.trim().split('\n').toSorted()).toEqual(ncclLines(rankHosts));
  });

  it('MPI_Abort on another host ends the job with its status', async () => {
    const { status, stderr } = await run('h1:1,h2:1,h3:1', tour, 'abort', '7');
    expect(status).toBe(7);
    expect(stderr).toContain('rank 1 on h2 called MPI_Abort with status 7');
  });

  it('a rank that never calls MPI_Init is named by the failure of those that wait for it', async () => {
    const { status, stderr } = await run('h1:1,h2:1,h3:1', tour, 'left');
    expect(status).toBe(125);
    expect(stderr).toContain('rank 1 (h2) exited with status 0 without joining PMI barrier 1 (MPI_Init');
  });

  it('a rank that is killed after MPI_Init is named, and the others end', async () => {
    const { status, stderr } = await run('h1:1,h2:1,h3:1', tour, 'killed');
    expect(status).toBe(137);
    expect(stderr).toMatch(/rank 1 on h2 \(pid [0-9]+\) died of SIGKILL/u);
  });
});
