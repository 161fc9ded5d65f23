/** The programs of test/gpu/native with a stand-in for NVIDIA's driver, their ranks on hosts that the network connects. */
import { beforeAll, it } from 'vitest';
import { describeIf } from '../rig/capability.ts';
import { GRAPH_BYTES, gpuPrograms, noCompiler } from '../rig/gpu-programs.ts';
import { buildStandIn, ownKernels, standInEnvironment } from '../rig/stand-in.ts';
import { inFull } from '../rig/whole.ts';

const environment = { ...process.env, ...standInEnvironment, ...ownKernels, NCCL_MAX_NCHANNELS: '4' };

describeIf(noCompiler, 'GPU test programs on several hosts', () => {
  beforeAll(buildStandIn, 900_000);
  const programs = gpuPrograms();

  it.each([
    ['two_streams 3 20 64 messages', 'two_streams: 3 ranks, 20 rounds of messages: right'],
    ['group_streams 4 4 1048576', 'group_streams: 4 ranks, 4 rounds: right'],
    ['many 4 500 16', 'many: 4 ranks, 500 operations in groups of 16: right'],
    [`graphs 3 10 ${GRAPH_BYTES}`, `graphs: 3 ranks, 10 replays, up to ${GRAPH_BYTES} bytes: right`],
    ['kept_graphs 3 5 40000', 'kept_graphs: 3 ranks, 5 replays: right'],
    ['calls 3 order', 'calls: 3 ranks, order: right'],
    ['calls 3 steady', 'calls: 3 ranks, steady: right'],
    ['abort_alone 2', 'abort_alone: 2 ranks: those who did not wait went on'],
    ['abort_alone 4', 'abort_alone: 4 ranks: those who did not wait went on'],
    ['leave 2', 'leave: 2 ranks: who needed it was told, and nobody else'],
    ['leave 4', 'leave: 4 ranks: who needed it was told, and nobody else'],
    ['slots 2 3 2', 'slots: 2 ranks, 3 communicators, 2 aborts: right'],
    ['slots 4 3 2', 'slots: 4 ranks, 3 communicators, 2 aborts: right'],
    ...inFull([
      ['two_streams 4 20 64 collectives', 'two_streams: 4 ranks, 20 rounds of collectives: right'],
      ['unlike_groups 4 1048576', 'unlike_groups: 4 ranks, up to 1048576 bytes: right'],
      ['one_way 4 10 4096', 'one_way: 4 ranks, 10 rounds, up to 4096 elements: right'],
      ['options 4', 'options: 4 ranks: right'],
      ['memory 4 4', 'memory: 4 ranks, 4 communicators: right'],
      ['left_over 3 5 40000', 'left_over: 3 ranks, 5 rounds: right'],
      ['freed 3 12 100000', 'freed: 3 ranks, 12 buffers: right'],
      ['calls 3 once', 'calls: 3 ranks, once: right'],
      ['calls 3 together', 'calls: 3 ranks, together: right'],
    ]),
  ])(
    'the program %s succeeds on two hosts',
    (line, says) => programs.expectOnHosts(2, line, says, environment),
    240_000,
  );
});
