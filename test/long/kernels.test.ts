/** The kernels' own code (native/cuda/kernels), run by a stand-in for a GPU whose threads are fibers (native/test/driver/simt). */
import { beforeAll, expect, it } from 'vitest';
import { describeIf } from '../rig/capability.ts';
import { Command } from '../rig/command.ts';
import { gpuPrograms, noCompiler } from '../rig/gpu-programs.ts';
import { buildMatrix, runMatrix } from '../rig/matrix.ts';
import {
  buildGpuDirect,
  buildStandInKernels,
  copiesAlways,
  fewThreads,
  gpuDirectEnvironment,
  noStandInKernels,
  standInEnvironment,
} from '../rig/stand-in.ts';

const environment = { ...process.env, ...standInEnvironment, ...fewThreads };

/** Of the matrix: prime to its numbers of counts and places, so that every row of the tests meets others. */
const PART = 11;
const gpuDirect = gpuDirectEnvironment('device-memory,dma-buf');
/** Lanes of a warp never run the same instruction, so each line of LL128 is seen and stored in parts. */
const APART = { NCCLRUN_STAND_IN_LANES: 'apart' };

describeIf(
  noStandInKernels,
  'the kernels on a stand-in for a GPU',
  () => {
    beforeAll(() => {
      buildMatrix();
      buildStandInKernels();
      buildGpuDirect();
    }, 900_000);

    it.each<[string, number, Record<string, string>]>([
      ['by default', 4, {}],
      ['with direct LL', 3, { NCCL_ALGO: 'direct', NCCL_PROTO: 'll' }],
      ['with direct LL128', 4, { NCCL_ALGO: 'direct', NCCL_PROTO: 'll128' }],
      ['with direct LL128 and divergent lanes', 3, { NCCL_ALGO: 'direct', NCCL_PROTO: 'll128', ...APART }],
      ['with direct Simple', 4, { NCCL_ALGO: 'direct', NCCL_PROTO: 'simple' }],
      ['with ring LL', 3, { NCCL_ALGO: 'ring', NCCL_PROTO: 'll' }],
      ['with ring LL128', 3, { NCCL_ALGO: 'ring', NCCL_PROTO: 'll128' }],
      ['with ring Simple', 3, { NCCL_ALGO: 'ring', NCCL_PROTO: 'simple' }],
      ['with tree LL', 4, { NCCL_ALGO: 'tree', NCCL_PROTO: 'll' }],
      ['with tree LL128', 4, { NCCL_ALGO: 'tree', NCCL_PROTO: 'll128' }],
      ['with tree Simple', 4, { NCCL_ALGO: 'tree', NCCL_PROTO: 'simple' }],
      ['with copy engines', 3, copiesAlways],
    ])('every collective is exact %s on %i ranks', (name, ranks, wishes) =>
      runMatrix(ranks, ['-n', String(ranks), '--tag-output=none'], {
        seed: name.length + ranks,
        part: PART,
        environment: { ...environment, ...wishes },
      }),
    );

    it.each<[number, number, string, Record<string, string>]>([
      [2, 2, 'by default', {}],
      [4, 2, 'by default', {}],
      [4, 2, 'by rings', { NCCL_ALGO: 'ring' }],
      [4, 2, 'directly', { NCCL_ALGO: 'direct' }],
      [3, 3, 'by trees', { NCCL_ALGO: 'tree' }],
      [4, 2, 'by rails', { NCCL_ALGO: 'rail,ring' }],
      [3, 2, 'by GPUDirect', gpuDirect],
      [2, 2, 'by GPUDirect, receives alone', { ...gpuDirect, NCCL_NET_GDR_READ: '0' }],
    ])('every collective is exact on %i ranks of %i hosts %s', (ranks, hosts, _name, wishes) =>
      runMatrix(ranks, ['-n', String(ranks), '--simulate-hosts', String(hosts), '--tag-output=none'], {
        seed: ranks,
        part: PART,
        environment: { ...environment, ...wishes },
      }),
    );
  },
  noStandInKernels !== null,
);

describeIf(
  noStandInKernels,
  'bulk copies on a stand-in for a GPU',
  () => {
    beforeAll(buildStandInKernels, 900_000);

    // They happen as late as the kernel lets them: a step that is told before its data are there, or a buffer that is overwritten
    // before they have left, gives wrong elements.
    it.each([
      ['all_reduce -n 2 -b 64K -e 1M', { NCCL_ALGO: 'direct', NCCL_PROTO: 'simple' }],
      ['all_reduce -n 2 --simulate-hosts 2 -b 64K -e 1M', {}],
      ['sendrecv -n 2 -b 64K -e 1M', { NCCL_ALGO: 'direct', NCCL_PROTO: 'simple' }],
      ['all_reduce -n 3 -b 96K -e 96K', copiesAlways],
      ['reduce_scatter -n 3 -b 96K -e 96K', copiesAlways],
    ])('%s is exact in place and out of place with %o', async (line, wishes) => {
      const words = `perf ${line} --device cuda --iters 2 --check`.split(' ');
      const run = await Command.run(words, { environment: { ...environment, ...wishes } });
      expect(run.stdout).toMatch(/Out of bounds values : 0 OK/);
    });
  },
  noStandInKernels !== null,
);

describeIf(
  noStandInKernels ?? noCompiler,
  'programs on a stand-in that runs the kernels',
  () => {
    beforeAll(buildStandInKernels, 900_000);
    const programs = gpuPrograms();

    it.each([
      ['group_streams 4 5 1048576', 'group_streams: 4 ranks, 5 rounds: right'],
      ['unlike_groups 4 262144', 'unlike_groups: 4 ranks, up to 262144 bytes: right'],
      ['many 4 500 16', 'many: 4 ranks, 500 operations in groups of 16: right'],
      ['graphs 3 10 65536', 'graphs: 3 ranks, 10 replays, up to 65536 bytes: right'],
    ])('the program %s succeeds on the simulated kernels', (line, says) =>
      programs.expectLast(line, says, environment),
    );

    it.each(['ll', 'll128'])('the receiver of one-way %s traffic sends credits', (protocol) =>
      programs.expectLast('one_way 4 6 2048', 'one_way: 4 ranks, 6 rounds, up to 2048 elements: right', {
        ...environment,
        NCCL_PROTO: protocol,
      }),
    );

    // All channels: a pair has fewest slots then, and an all-reduce of two steps takes half of them.
    it.each(['ll', 'll128'])('one-way %s traffic and two-step all-reduces succeed with four slots', (protocol) =>
      programs.expectLast('one_way 4 2 8192', 'one_way: 4 ranks, 2 rounds, up to 8192 elements: right', {
        ...environment,
        NCCL_MAX_NCHANNELS: '64',
        NCCL_ALGO: 'direct',
        NCCL_PROTO: protocol,
      }),
    );

    // Single-step launches before those of a ring, whose ranks send as far ahead as four slots let them.
    it('a ring counts the slots that single-step launches have read', () =>
      programs.expectLast('one_way 2 40 8192', 'one_way: 2 ranks, 40 rounds, up to 8192 elements: right', {
        ...environment,
        NCCL_MAX_NCHANNELS: '1',
        NCCL_ALGO: 'direct;allreduce:ring',
        NCCL_PROTO: 'll',
      }));
  },
  noStandInKernels !== null,
);
