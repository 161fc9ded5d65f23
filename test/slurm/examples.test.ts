/** The batch scripts of examples/slurm, each submitted as its first lines say. */
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeIf } from '../rig/capability.ts';
import { Cluster, repository } from '../rig/cluster.ts';
import { Slurm, slurmUnavailable } from '../rig/slurm.ts';
import { buildStandIn, ownKernels, standInEnvironment } from '../rig/stand-in.ts';

describeIf(slurmUnavailable(), 'examples/slurm', () => {
  let cluster: Cluster;
  let slurm: Slurm;
  let directory: string;
  beforeAll(async () => {
    buildStandIn();
    cluster = await Cluster.start(2);
    slurm = await Slurm.start(cluster, { gpus: 2 });
    directory = await mkdtemp('/var/tmp/ncclrun-slurm-');
  });
  afterAll(async () => {
    await slurm[Symbol.asyncDispose]();
    await cluster[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  });

  /** Submits the example and waits for it; `output` may have a pattern of sbatch's in its name. */
  async function submit(name: string, options: readonly string[], words: readonly string[]) {
    const script = join(repository, 'examples/slurm', `${name}.sbatch`);
    const path = `PATH=${join(repository, 'bin')}:${process.env['PATH'] ?? ''}`;
    const all = ['--parsable', '--wait', `--chdir=${directory}`, ...options, script, ...words];
    const { status, stdout, stderr } = await slurm.run(['env', path, 'sbatch', ...all]);
    return { status, stderr, job: stdout.trim() };
  }
  const linesOf = async (file: string) => (await readFile(join(directory, file), 'utf8')).trim().split('\n').toSorted();

  it('train.sbatch runs a rank on each host', async () => {
    const { status } = await submit('train', ['--output=train.out'], ['sh', '-c', 'echo $RANK $(hostname)']);
    expect({ status, lines: await linesOf('train.out') }).toEqual({ status: 0, lines: ['[0] 0 h1', '[1] 1 h2'] });
  });

  it('train.sbatch sums on the GPUs of its hosts with a Python program', async () => {
    const variables = { ...standInEnvironment, ...ownKernels };
    const exported = Object.entries(variables).flatMap(([name, value]) => ['-x', `${name}=${value}`]);
    const program = ['python3', join(repository, 'test/rig/programs/gpu-all-reduce.py')];
    const options = ['--gpus-per-node=2', '--output=gpus.out'];
    const { status } = await submit('train', options, [
      '--engine',
      'ncclrun',
      '--tag-output=none',
      ...exported,
      ...program,
    ]);
    const lines = [0, 1, 2, 3].map((rank) => `rank ${rank} of 4 on h${rank < 2 ? 1 : 2}: 0 wrong`);
    expect({ status, lines: await linesOf('gpus.out') }).toEqual({ status: 0, lines });
  });

  it('programs.sbatch runs a coordinator and three workers', async () => {
    const { status } = await submit('programs', ['--output=programs.out'], []);
    const workers = [1, 2, 3].map((rank) => `[${rank}] rank ${rank} of 4 is a worker`);
    const lines = ['[0] rank 0 of 4 is the coordinator', ...workers];
    expect({ status, lines: await linesOf('programs.out') }).toEqual({ status: 0, lines });
  });

  it('requeue.sbatch queues a failed job again', async () => {
    const program = join(directory, 'fails-once');
    await writeFile(program, '#!/bin/sh\n[ "${SLURM_RESTART_COUNT:-0}" -gt 0 ] && echo went on || exit 3\n');
    await chmod(program, 0o755);
    // Slurm holds what it has queued again for a while.
    const script = join(repository, 'examples/slurm/requeue.sbatch');
    const path = `PATH=${join(repository, 'bin')}:${process.env['PATH'] ?? ''}`;
    const words = ['--parsable', `--chdir=${directory}`, '--output=requeue.out', script, program];
    const { stdout } = await slurm.run(['env', path, 'sbatch', ...words]);
    const job = stdout.trim();
    await slurm.jobReaches(job, 'Restarts', '1');
    expect(await linesOf('requeue.out')).toContain('status 3: queued again');
    await slurm.run(['scancel', job]);
  });

  it('array.sbatch runs a job per array index', async () => {
    const { status } = await submit('array', [], ['sh', '-c', 'echo $LEARNING_RATE']);
    const outputs = await Promise.all(
      [0, 1, 2, 3].map((index) => readFile(join(directory, `sweep-${index}.out`), 'utf8')),
    );
    expect({ status, outputs }).toEqual({ status: 0, outputs: ['0.1\n', '0.03\n', '0.01\n', '0.003\n'] });
  });
});
