/**
 * MPI programs in a Slurm allocation: the ranks are ncclrun's, whatever Slurm's own PMI says of the steps in which ncclrun and its agents run. On two
 * hosts they leave without MPI_Finalize: test/cluster/mpi.test.ts says why.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeIf } from '../rig/capability.ts';
import { Cluster, repository } from '../rig/cluster.ts';
import type { Outcome } from '../rig/command.ts';
import {
  compileMpi,
  compileMpiWithEngine,
  mpichUnavailable,
  ncclLines,
  openMpiUnavailable,
  tourLines,
} from '../rig/mpi.ts';
import { Slurm, slurmUnavailable } from '../rig/slurm.ts';

const ncclrun = [join(repository, 'bin/ncclrun'), '--tag-output=none'] as const;
const SOURCE = 'test/rig/programs/mpi-tour.c';

function expectTour({ status, stdout, stderr }: Outcome, rankHosts: readonly number[]): void {
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout.trim().split('\n').toSorted()).toEqual(tourLines(rankHosts));
}

describeIf(slurmUnavailable() ?? mpichUnavailable() ?? openMpiUnavailable(), 'MPI programs in a Slurm job', () => {
  let cluster: Cluster;
  let slurm: Slurm;
  let directory = '';
  let tour = '';
  let nccl = '';
  let ofOpenMpi = '';
  beforeAll(async () => {
    cluster = await Cluster.start(2);
    slurm = await Slurm.start(cluster);
    directory = await mkdtemp(join(repository, 'build/test-slurm-mpi-'));
    tour = await compileMpi(SOURCE, directory);
    nccl = await compileMpiWithEngine('test/rig/programs/mpi-nccl.c', directory);
    ofOpenMpi = await compileMpi(SOURCE, directory, 'openmpi');
  });
  afterAll(async () => {
    await slurm[Symbol.asyncDispose]();
    await cluster[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  });
  const salloc = (...words: readonly string[]): Promise<Outcome> => slurm.run(['salloc', '--quiet', ...words]);

  it('a program of MPICH knows its ranks on two hosts', async () => {
    const outcome = await salloc('--nodes=2', '--ntasks-per-node=2', ...ncclrun, tour, 'unfinished');
    expectTour(outcome, [0, 0, 1, 1]);
  });

  it('MPI passes on the unique id, and NCCL sums over the ranks of two hosts', async () => {
    const { status, stdout, stderr } = await salloc('--nodes=2', '--ntasks-per-node=2', ...ncclrun, nccl, 'unfinished');
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout.trim().split('\n').toSorted()).toEqual(ncclLines([0, 0, 1, 1]));
  });

  it.each(['pmi2', 'pmix'])('a program of MPICH knows its ranks where %s is the default of srun', async (type) => {
    const words = ['env', `SLURM_MPI_TYPE=${type}`, ...ncclrun, tour, 'unfinished'];
    expectTour(await salloc('--nodes=2', '--ntasks-per-node=2', ...words), [0, 0, 1, 1]);
  });

  it.each(['pmi2', 'pmix'])(
    'a program of MPICH knows its ranks where ncclrun is a step with --mpi=%s',
    async (type) => {
      const step = ['srun', `--mpi=${type}`, '--nodes=1', '--ntasks=1'];
      expectTour(await salloc('--nodes=1', ...step, ...ncclrun, '-n', '2', '--oversubscribe', tour), [0, 0]);
    },
  );

  it.each([
    ['that ncclrun is', ['srun', '--mpi=pmix', '--nodes=1', '--ntasks=1'], ['h1']],
    ['that starts the agents', ['env', 'SLURM_MPI_TYPE=pmix'], ['h1', 'h2']],
  ])('ranks see nothing of the PMIx server of the step %s', async (_, words, hosts) => {
    const script = 'env | grep "^PMIX" | cut -d= -f1; hostname';
    const { status, stdout } = await salloc(`--nodes=${hosts.length}`, ...words, ...ncclrun, 'sh', '-c', script);
    expect({ status, lines: stdout.trim().split('\n').toSorted() }).toEqual({ status: 0, lines: hosts });
  });

  it('the remedy names mpirun where the variables of Slurm keep a program of Open MPI from starting', async () => {
    const { status, stderr } = await salloc('--nodes=2', ...ncclrun, ofOpenMpi);
    expect(status).toBe(1);
    expect(stderr).toContain('next: Open MPI finds its ranks by PMIx alone: start the program with mpirun or srun');
  });
});
