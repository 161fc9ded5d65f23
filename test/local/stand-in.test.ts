/** The engine for GPUs on a stand-in for NVIDIA's driver: all of it but the kernels' own code, which ../long/kernels.test.ts runs. */
import { beforeAll, expect, it } from 'vitest';
import { describeIf } from '../rig/capability.ts';
import { noCompiler } from '../rig/gpu-programs.ts';
import { Command } from '../rig/command.ts';
import { buildMatrix, runMatrix } from '../rig/matrix.ts';
import { buildStandIn, copiesAlways, ownKernels, standInEnvironment } from '../rig/stand-in.ts';
import { sample, sampleSize } from '../rig/whole.ts';

const environment = { ...process.env, ...standInEnvironment, ...ownKernels };
/** Of the matrix, as in ../long/kernels.test.ts. */
const PART = sampleSize(5, 10);
/** Some ranks come too late. */
const COPIES = { ...copiesAlways, NCCLRUN_COPY_TIMEOUT_US: '20000' };

describeIf(noCompiler, 'jobs on the GPUs of the stand-in driver', () => {
  beforeAll(() => {
    buildMatrix();
    buildStandIn();
  }, 900_000);

  it.each(
    sample<[string, number, Record<string, string>]>(
      [
        ['by default', 4, {}],
        ['for a single rank', 1, {}],
        ['with direct LL', 3, { NCCL_ALGO: 'direct', NCCL_PROTO: 'll' }],
        ['with direct LL128', 4, { NCCL_ALGO: 'direct', NCCL_PROTO: 'll128' }],
        ['with ring Simple', 3, { NCCL_ALGO: 'ring', NCCL_PROTO: 'simple' }],
        ['with tree Simple', 4, { NCCL_ALGO: 'tree', NCCL_PROTO: 'simple' }],
        ['through host memory', 3, { NCCL_P2P_DISABLE: '1' }],
        ['with copy engines', 2, COPIES],
        ['with copy engines', 4, COPIES],
        ['with copy engines and late ranks', 4, { ...COPIES, NCCLRUN_COPY_TIMEOUT_US: '30' }],
        ['with copy engines and a single queue', 3, { ...COPIES, NCCLRUN_STAND_IN_CHANNELS: '1' }],
      ],
      3,
    ),
  )('every collective is exact %s on %i ranks', (_, ranks, wishes) =>
    runMatrix(ranks, ['-n', String(ranks), '--tag-output=none'], {
      seed: ranks,
      part: PART,
      environment: { ...environment, ...wishes },
    }),
  );

  it.each(['reduce', 'reduce_scatter'])('%s gives right results with large and with small slots', async (name) => {
    const words = `perf ${name} -n 4 --device cuda -b 33001232 -e 33001232 --iters 1 --check`.split(' ');
    const wishes = { NCCL_ALGO: 'direct', NCCL_PROTO: 'simple' };
    const run = await Command.run(words, { environment: { ...environment, ...wishes } });
    expect(run.stdout).toMatch(/Out of bounds values : 0 OK/);
  });

  it.each([
    ['all_gather', 'allGather'],
    ['reduce_scatter', 'reduceScatter'],
    ['all_reduce', 'allReduce'],
  ])('copy engines take part in %s, and its results are exact', async (name, called) => {
    const words = `perf ${name} -n 3 --device cuda -b 1M -e 1M --check --iters 5`.split(' ');
    const run = await Command.run(words, { environment: { ...environment, ...copiesAlways, NCCL_DEBUG: 'INFO' } });
    expect(run.status).toBe(0);
    expect(run.stdout).toMatch(/Out of bounds values : 0 OK/);
    // Each rank says of its first such operation that it is one.
    const output = new RegExp(`copy engines run ${called} of \\d+ bytes and later operations`, 'g');
    expect(run.stderr.match(output)).toHaveLength(3);
  });

  // Its own part a GPU copies in rows of 256 KiB, and what is left of them in two.
  it.each([
    ['two rows and 13 bytes', 'alltoall', 2, 524301],
    ['three rows and a byte', 'all_gather', 3, 786433],
    ['whole rows', 'alltoall', 3, 1048576],
    ['less than two rows', 'all_gather', 2, 524287],
  ])("copy engines move a rank's own part of %s in %s of %i ranks", async (_, name, ranks, bytes) => {
    const size = String(ranks * bytes);
    const words = ['perf', name, '-n', String(ranks), '--device', 'cuda', '-b', size, '-e', size, '-d', 'int8'];
    const run = await Command.run([...words, '--check', '--iters', '2'], {
      environment: { ...environment, ...copiesAlways, NCCL_DEBUG: 'INFO' },
    });
    expect(run.stdout).toMatch(/Out of bounds values : 0 OK/);
    expect(run.stderr).toContain('copy engines run');
  });
});
