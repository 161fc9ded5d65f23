/** MPI programs on this machine: MPICH's find each other, Open MPI's are told what to do. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeIf } from '../rig/capability.ts';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import {
  compileMpi,
  compileMpiWithEngine,
  mpichUnavailable,
  ncclLines,
  openMpiUnavailable,
  tourLines,
} from '../rig/mpi.ts';

const run = (...words: readonly string[]) => Command.run(['--tag-output=none', ...words]);
const alone = /^(rank 0 of 1 .*\n){2}$/u;

describeIf(mpichUnavailable(), 'programs of MPICH', () => {
  let directory = '';
  let tour = '';
  let nccl = '';
  beforeAll(async () => {
    directory = await mkdtemp(join(repository, 'build/test-mpi-'));
    tour = await compileMpi('test/rig/programs/mpi-tour.c', directory);
    nccl = await compileMpiWithEngine('test/rig/programs/mpi-nccl.c', directory);
  });
  afterAll(() => rm(directory, { recursive: true }));

  it.each([
    ['itself', () => [tour]],
    ['under a shell', () => ['bash', '-c', `${tour}; exit $?`]],
  ] as const)('a program that is started by %s knows its four ranks', async (_, words) => {
    const { status, stdout, stderr } = await run('-n', '4', ...words());
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout.trim().split('\n').toSorted()).toEqual(tourLines([0, 0, 0, 0]));
  });

  it.each([
    ['MPI_Init', []],
    ['MPI_Init_thread', ['threads']],
  ])('MPI passes on the unique id, and NCCL sums over the ranks, after %s', async (_, words) => {
    const { status, stdout, stderr } = await run('-n', '4', nccl, ...words);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout.trim().split('\n').toSorted()).toEqual(ncclLines([0, 0, 0, 0]));
  });

  it('every rank is alone with --pmi none', async () => {
    expect((await run('--pmi', 'none', '-n', '2', tour)).stdout).toMatch(alone);
  });

  it('MPI_Abort ends the job with its status, also where a shell hides that', async () => {
    const { status, stderr } = await run('-n', '3', 'bash', '-c', `${tour} abort 9; true`);
    expect(status).toBe(9);
    expect(stderr).toContain('rank 1 on localhost called MPI_Abort with status 9\n');
    expect(stderr).toContain('2 other ranks were ended because of it: 0,2\n');
  });

  it('a restarted job has keys of its own', async () => {
    const script = `if [ "$TORCHELASTIC_RESTART_COUNT" = 0 ]; then ${tour} abort 3; else ${tour}; fi`;
    const { status, stdout } = await run('--max-restarts', '1', '-n', '3', 'bash', '-c', script);
    expect(status).toBe(0);
    expect(stdout.trim().split('\n').toSorted()).toEqual(tourLines([0, 0, 0]));
  });

  it('ranks that wait for one that left end also where the others go on without it', async () => {
    const { status, stderr } = await run('--on-failure', 'shrink', '-n', '3', tour, 'left');
    expect(status).not.toBe(0);
    expect(stderr).toContain('rank 1 (localhost) exited with status 0 without joining PMI barrier 1');
  });

  it('what is not PMI closes the connection with a note, and the rank goes on', async () => {
    const { status, stdout, stderr } = await run('-n', '1', 'bash', '-c', 'echo garbage >&29; cat <&29; echo went on');
    expect({ status, stdout }).toEqual({ status: 0, stdout: 'went on\n' });
    expect(stderr).toContain('rank 0 sent its PMI server (MPI) a line without a command: "garbage"');
  });
});

describeIf(openMpiUnavailable(), 'programs of Open MPI', () => {
  let directory = '';
  let tour = '';
  beforeAll(async () => {
    directory = await mkdtemp(join(repository, 'build/test-open-mpi-'));
    tour = await compileMpi('test/rig/programs/mpi-tour.c', directory, 'openmpi');
  });
  afterAll(() => rm(directory, { recursive: true }));

  it('a note says how to start one whose ranks do not find each other', async () => {
    const { stdout, stderr } = await run('-n', '2', 'bash', '-c', `${tour}; exec sleep 0.2`);
    expect(stdout).toMatch(alone);
    expect(stderr).toMatch(
      /rank 0 is a program of Open MPI \(lib[^)]*\).*mpirun --hostfile FILE, or build it against MPICH/u,
    );
  });
});
