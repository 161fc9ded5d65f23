/** The programs of test/gpu/native, which test/gpu/run.sh runs on GPUs, here on the host device and with small numbers. */
import { it } from 'vitest';
import { describeIf } from '../rig/capability.ts';
import { gpuPrograms, noCompiler } from '../rig/gpu-programs.ts';
import { sample } from '../rig/whole.ts';

describeIf(noCompiler, 'GPU test programs on the host device', () => {
  const programs = gpuPrograms();

  it.each(
    sample(
      [
        ['two_streams 2 150 64 collectives', 'two_streams: 2 ranks, 150 rounds of collectives: right'],
        ['two_streams 4 60 32 collectives', 'two_streams: 4 ranks, 60 rounds of collectives: right'],
        ['two_streams 3 60 32 messages', 'two_streams: 3 ranks, 60 rounds of messages: right'],
        ['group_streams 2 30 8388608', 'group_streams: 2 ranks, 30 rounds: right'],
        ['group_streams 3 30 8388608', 'group_streams: 3 ranks, 30 rounds: right'],
        ['unlike_groups 2 4194304', 'unlike_groups: 2 ranks, up to 4194304 bytes: right'],
        ['unlike_groups 3 1048576', 'unlike_groups: 3 ranks, up to 1048576 bytes: right'],
        ['many 2 20000 1', 'many: 2 ranks, 20000 operations in groups of 1: right'],
        ['many 3 20000 16', 'many: 3 ranks, 20000 operations in groups of 16: right'],
        ['one_way 3 50 4096', 'one_way: 3 ranks, 50 rounds, up to 4096 elements: right'],
        ['graphs 2 500 262144', 'graphs: 2 ranks, 500 replays, up to 262144 bytes: right'],
        ['graphs 4 50 65536', 'graphs: 4 ranks, 50 replays, up to 65536 bytes: right'],
        ['abort 2', 'abort: 2 ranks: all ended, were told, and went on'],
        ['abort 3', 'abort: 3 ranks: all ended, were told, and went on'],
        ['abort_alone 2', 'abort_alone: 2 ranks: those who did not wait went on'],
        ['abort_alone 5', 'abort_alone: 5 ranks: those who did not wait went on'],
        ['leave 2', 'leave: 2 ranks: who needed it was told, and nobody else'],
        ['leave 4', 'leave: 4 ranks: who needed it was told, and nobody else'],
        ['teams 2', 'teams: 2 ranks: right'],
        ['teams 3', 'teams: 3 ranks: right'],
        ['teams 4', 'teams: 4 ranks: right'],
        ['threads 2 200', 'threads: 2 ranks, 200 rounds: right'],
        ['threads 4 60', 'threads: 4 ranks, 60 rounds: right'],
        ['options 2', 'options: 2 ranks: right'],
        ['options 4', 'options: 4 ranks: right'],
        ['hidden 3 alone 65536', 'hidden: 3 ranks, up to 65536 bytes through memory of the host: right'],
        ['one_thread 3 300000', 'one_thread: 3 ranks, 300000 bytes each: right'],
        ['left_over 3 10 100000', 'left_over: 3 ranks, 10 rounds: right'],
        ['calls 3 order', 'calls: 3 ranks, order: right'],
        ['calls 3 steady', 'calls: 3 ranks, steady: right'],
        ['calls 3 once', 'calls: 3 ranks, once: right'],
        ['calls 3 together', 'calls: 3 ranks, together: right'],
        ['slots 2 90 0', 'slots: 2 ranks, 90 communicators, 0 aborts: right'],
        ['handles 2 default', 'handles: 2 ranks, default: right'],
        ['handles 2 broken', 'handles: 2 ranks, broken: right'],
        ['lose_peer 2 small large send group', 'lose_peer: 2 ranks: each was told, and went on'],
        ['lose_peer 3 all', 'lose_peer: 3 ranks: each was told, and went on'],
      ],
      2,
    ),
  )('the program %s succeeds on the host device', (line, says) =>
    programs.expectLast(line, says, { ...process.env, NCCLRUN_DEVICE: 'host' }),
  );
});
