/** The programs of test/gpu/native on a stand-in for NVIDIA's driver: all of the engine but the kernels' own code. */
import { beforeAll, expect, it } from 'vitest';
import { describeIf } from '../rig/capability.ts';
import { GRAPH_BYTES, gpuPrograms, noCompiler } from '../rig/gpu-programs.ts';
import { buildStandIn, copiesAlways, ownKernels, standInEnvironment } from '../rig/stand-in.ts';
import { inFull } from '../rig/whole.ts';

const environment = { ...process.env, ...standInEnvironment, ...ownKernels };
/** Some ranks come too late. */
const COPIES = { ...copiesAlways, NCCLRUN_COPY_TIMEOUT_US: '20000' };

describeIf(noCompiler, 'GPU test programs on the stand-in driver', () => {
  beforeAll(buildStandIn, 900_000);
  const programs = gpuPrograms();

  it.each([
    ['two_streams 4 60 64 collectives', 'two_streams: 4 ranks, 60 rounds of collectives: right'],
    ['two_streams 3 60 64 messages', 'two_streams: 3 ranks, 60 rounds of messages: right'],
    ['group_streams 4 10 1048576', 'group_streams: 4 ranks, 10 rounds: right'],
    ['unlike_groups 4 1048576', 'unlike_groups: 4 ranks, up to 1048576 bytes: right'],
    ['many 4 500 16', 'many: 4 ranks, 500 operations in groups of 16: right'],
    ['one_way 4 20 4096', 'one_way: 4 ranks, 20 rounds, up to 4096 elements: right'],
    [`graphs 3 20 ${GRAPH_BYTES}`, `graphs: 3 ranks, 20 replays, up to ${GRAPH_BYTES} bytes: right`],
    ['replays 2 50', 'replays: 2 ranks, 50 replays: recorded'],
    ['replays 4 20', 'replays: 4 ranks, 20 replays: recorded'],
    [`graphs 1 20 ${GRAPH_BYTES}`, `graphs: 1 ranks, 20 replays, up to ${GRAPH_BYTES} bytes: right`],
    // On GPUs of 132 multiprocessors, of which each launch wants 64.
    ['opposite 2 8 1 2000000', 'opposite: 2 ranks, 8 communicators, 1 rounds: right'],
    ['options 4', 'options: 4 ranks: right'],
    ['memory 4 6', 'memory: 4 ranks, 6 communicators: right'],
    ['threads 2 20', 'threads: 2 ranks, 20 rounds: right'],
    ['one_thread 4 100000', 'one_thread: 4 ranks, 100000 bytes each: right'],
    ['left_over 3 5 40000', 'left_over: 3 ranks, 5 rounds: right'],
    ['calls 3 order', 'calls: 3 ranks, order: right'],
    ['calls 3 steady', 'calls: 3 ranks, steady: right'],
    ['calls 3 once', 'calls: 3 ranks, once: right'],
    ['calls 3 together', 'calls: 3 ranks, together: right'],
    ['slots 2 50 40', 'slots: 2 ranks, 50 communicators, 40 aborts: right'],
    ['handles 2 default', 'handles: 2 ranks, default: right'],
    ['handles 2 broken', 'handles: 2 ranks, broken: right'],
    ['kept_graphs 3 5 40000', 'kept_graphs: 3 ranks, 5 replays: right'],
    ...inFull([['abort 3', 'abort: 3 ranks: all ended, were told, and went on']]),
    ['abort_alone 2', 'abort_alone: 2 ranks: those who did not wait went on'],
    ['abort_alone 4', 'abort_alone: 4 ranks: those who did not wait went on'],
    ['leave 2', 'leave: 2 ranks: who needed it was told, and nobody else'],
    ['leave 4', 'leave: 4 ranks: who needed it was told, and nobody else'],
    ...inFull([['lose_peer 3 all', 'lose_peer: 3 ranks: each was told, and went on']]), // killed in nineteen states
  ])('the program %s succeeds on the stand-in', (line, says) => programs.expectLast(line, says, environment), 240_000);

  it.each([
    ['two_streams 3 60 64 messages', 'two_streams: 3 ranks, 60 rounds of messages: right'],
    ['group_streams 4 10 1048576', 'group_streams: 4 ranks, 10 rounds: right'],
    ['unlike_groups 4 1048576', 'unlike_groups: 4 ranks, up to 1048576 bytes: right'],
    [`graphs 3 20 ${GRAPH_BYTES}`, `graphs: 3 ranks, 20 replays, up to ${GRAPH_BYTES} bytes: right`],
    ['memory 4 6', 'memory: 4 ranks, 6 communicators: right'],
    ['one_thread 4 100000', 'one_thread: 4 ranks, 100000 bytes each: right'],
    ['left_over 3 5 40000', 'left_over: 3 ranks, 5 rounds: right'],
    ['kept_graphs 3 5 40000', 'kept_graphs: 3 ranks, 5 replays: right'],
    ['freed 3 12 100000', 'freed: 3 ranks, 12 buffers: right'],
    ...inFull([['lose_peer 3 large moving gather group', 'lose_peer: 3 ranks: each was told, and went on']]),
  ])('the program %s succeeds with copy engines', (line, says) =>
    programs.expectLast(line, says, { ...environment, ...COPIES }),
  );

  // Ranks call their communicators in opposite orders. (The stand-in's own queues would hold up kernels, too.)
  it('the engine uses no copy engines when the GPU has a single queue', async () => {
    const env = { ...environment, ...COPIES, NCCLRUN_COPY_TIMEOUT_US: '100000', NCCL_DEBUG: 'INFO' };
    const copied = async (more: Record<string, string>): Promise<boolean> => {
      const { stderr } = await programs.run('two_streams 2 6 8 collectives', { ...env, ...more });
      return stderr.includes('copy engines run');
    };
    expect(await copied({})).toBe(true);
    expect(await copied({ CUDA_DEVICE_MAX_CONNECTIONS: '1' })).toBe(false);
  });

  it('threads that share a GPU share the queues of its streams', async () => {
    const shared = { NCCLRUN_STAND_IN_GPUS: '1', NCCLRUN_STAND_IN_CHANNELS: '32', NCCL_MULTI_RANK_GPU_ENABLE: '1' };
    await programs.expectLast('threads 4 60', 'threads: 4 ranks, 60 rounds: right', {
      ...environment,
      ...COPIES,
      ...shared,
    });
  });

  it('a process ends while the driver delays the release of its memory', async () => {
    const began = Date.now();
    const env = { ...environment, NCCLRUN_STAND_IN_FREE_MS: '60000' };
    await programs.expectLast('abort_alone 2', 'abort_alone: 2 ranks: those who did not wait went on', env);
    expect(Date.now() - began).toBeLessThan(30_000);
  });

  it('ranks of one thread agree on copy engines in a group', async () => {
    const env = { ...environment, ...copiesAlways, NCCL_DEBUG: 'INFO' };
    const { stderr } = await programs.run('one_thread 4 100000', env);
    expect(stderr.match(/copy engines run allGather of 400000 bytes and later operations/g)).toHaveLength(4);
  });
});
