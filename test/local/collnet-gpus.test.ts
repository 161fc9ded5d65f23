/**
 * All-reduces of GPUs that the network reduces on the way: the stand-in's GPUs on simulated hosts, and the double of a plugin. What the
 * network reduces into GPU memory is visible only once it was flushed (native/test/net/double).
 */
import { beforeAll, expect, it } from 'vitest';
import { describeIf } from '../rig/capability.ts';
import { Command } from '../rig/command.ts';
import { GRAPH_BYTES, gpuPrograms, noCompiler } from '../rig/gpu-programs.ts';
import { buildMatrix, runMatrix } from '../rig/matrix.ts';
import { parseResult } from '../rig/result.ts';
import {
  buildGpuDirect,
  buildStandIn,
  buildStandInKernels,
  fewThreads,
  gpuDirectEnvironment,
  noStandInKernels,
  ownKernels,
  standInEnvironment,
} from '../rig/stand-in.ts';
import { Steering } from '../rig/steering.ts';
import { inFull, isWhole, sample, sampleSize } from '../rig/whole.ts';

const IN_GPUS = 'device-memory';
const IN_HOSTS = 'receives=8';
const CHAIN = { NCCL_ALGO: 'allreduce:CollnetChain' };

function environment(double: string, wishes: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  const ofGpus = { ...standInEnvironment, ...ownKernels, ...gpuDirectEnvironment(double), NCCLRUN_DEVICE: 'cuda' };
  return { ...process.env, ...ofGpus, NCCL_COLLNET_ENABLE: '1', NCCL_ALGO: 'allreduce:collnet', ...wishes };
}

/** What ranks say of the variants of their all-reduces, and why there is no network that reduces. */
async function said(double: string, wishes: NodeJS.ProcessEnv, ...argv: string[]): Promise<readonly string[]> {
  const words = ['perf', 'all_reduce', '-n', '2', '--simulate-hosts', '2', '-b', '64', '-e', '64', '-c', '1', ...argv];
  const { status, stderr, stdout } = await Command.run(words, {
    environment: environment(double, { NCCL_DEBUG: 'INFO', NCCL_DEBUG_SUBSYS: 'INIT,NET,TUNING', ...wishes }),
  });
  expect({ status, right: stdout.includes(' 0 OK') }, stderr).toEqual({ status: 0, right: true });
  const lines = `${stdout}\n${stderr}`.match(
    /(?<=simulated-\d: )(all_reduce: |(?:no|the) collective network.*: |NCCL_ALGO ).*/gu,
  );
  return [...new Set(lines)].toSorted();
}

describeIf(noCompiler, 'a network that reduces for GPUs', () => {
  beforeAll(() => {
    buildMatrix();
    buildStandIn();
    buildGpuDirect();
  }, 900_000);

  const placements: [string, number, number, string, NodeJS.ProcessEnv][] = [
    ['in GPU memory', 2, 2, IN_GPUS, {}],
    ['in GPU memory', 4, 2, `${IN_GPUS},dma-buf`, {}],
    ['in GPU memory', 6, 3, `${IN_GPUS},null-request=1,done-after=3`, {}],
    ['where a flush needs no request', 4, 2, `${IN_GPUS},flush-at-once`, {}],
    ['in memory of the hosts', 4, 2, `${IN_HOSTS},strict-close`, {}],
    ['in memory of the hosts', 3, 3, `${IN_HOSTS},done-after=3`, {}],
    ['of a network that reaches no GPUs', 4, 2, `${IN_GPUS},coll-hosts-only=1`, {}],
    ['of a network that refuses GPU memory', 4, 2, `${IN_GPUS},coll-hosts-only=2`, {}],
    ['where GPUs are not read', 4, 2, IN_GPUS, { NCCL_NET_GDR_READ: '0' }],
    ['on one channel', 4, 2, IN_GPUS, { NCCL_MAX_NCHANNELS: '1' }],
    ['by chains', 4, 2, IN_GPUS, CHAIN],
    ['by chains', 6, 2, `${IN_HOSTS},null-request=1`, CHAIN],
    ['by chains of unlike lengths', 5, 2, `${IN_GPUS},done-after=3`, {}],
    ['by chains of one GPU', 3, 3, IN_GPUS, CHAIN],
  ];
  it.each(sample(placements, 2))(
    'every type and operator is exact with slots %s, %i ranks on %i hosts (%s)',
    (_, ranks, hosts, double, wishes) =>
      runMatrix(ranks, ['-n', String(ranks), '--simulate-hosts', String(hosts), '--tag-output=none'], {
        seed: ranks,
        part: sampleSize(20, 40),
        environment: environment(double, wishes),
      }),
  );

  it.each<[NodeJS.ProcessEnv, RegExp]>([
    [{}, /^all_reduce: (up to \d+ B: CollNet, Simple, \d channels; )*larger: CollNet, Simple, 4 channels$/u],
    [CHAIN, /^all_reduce: (up to \d+ B: CollNet chains, Simple, \d channels; )*larger: CollNet chains, Simple, 4 /u],
    [{ NCCL_ALGO: 'COLLNETDIRECT' }, /larger: CollNet, Simple/u],
    [{ NCCL_ALGO: '^collnet' }, /larger: (?!CollNet)/u],
    [{ NCCL_ALGO: '^collnetdirect' }, /larger: (?!CollNet,)/u],
    [{ NCCL_ALGO: 'ring' }, /larger: ring/u],
    [{ NCCL_COLLNET_NODE_THRESHOLD: '3' }, /larger: (?!CollNet)/u],
  ])('all-reduces of GPUs take what the variables %j say', async (wishes, line) => {
    const [first, ...others] = await said(IN_GPUS, wishes);
    expect(first).toMatch(line);
    expect(others).toEqual([]);
  });

  it('NCCL_ALGO that names CollNet does not turn it on, and a line says so', async () => {
    const lines = await said(IN_GPUS, { NCCL_ALGO: 'CollnetDirect', NCCL_COLLNET_ENABLE: '' });
    expect(lines).toEqual([
      'NCCL_ALGO names CollNet, which is off: NCCL_COLLNET_ENABLE=1 turns it on',
      expect.stringMatching(/^all_reduce: .*larger: (?!CollNet)/u),
    ]);
  });

  it.each<[string, NodeJS.ProcessEnv, string | RegExp]>([
    ['coll-fails=2', CHAIN, 'connect: system error (2); its last warning: no tree is left for this group'],
    ['coll-fails=2', {}, 'connect: system error (2); its last warning: no tree is left for this group'],
    ['coll-none=1', {}, 'finds no device on this host'],
    ['coll-init-error=3', {}, 'init: internal error (3); its last warning: no aggregation manager answers'],
    ['coll-max-bytes=1000', {}, /can reduce at most 1000 bytes at once, and slots have \d+$/u],
  ])('all GPUs reduce themselves where it fails (%s, %j), and say why', async (double, wishes, why) => {
    const lines = await said(`${IN_GPUS},${double}`, wishes);
    expect(lines.filter((line) => /: CollNet( chains)?, /u.test(line))).toEqual([]);
    const reason = lines.filter((line) => line.startsWith('no collective network: '));
    expect(reason).toContainEqual(typeof why === 'string' ? expect.stringContaining(why) : expect.stringMatching(why));
  });

  it.each([
    ['coll-hosts-only=1', 'it does not register GPU memory'],
    ['coll-hosts-only=2', 'regMr: invalid usage'],
  ])('a line says why what the network reduces is in memory of the hosts (%s)', async (double, why) => {
    const lines = await said(`${IN_GPUS},${double}`, {});
    expect(lines[0]).toContain('CollNet');
    const reasons = lines.filter((line) => line.startsWith('the collective network Double does without GPUDirect: '));
    expect(reasons).toEqual([expect.stringContaining(why)]);
  });

  it('types that the network lacks take the next variant', async () => {
    const [line] = await said(`${IN_GPUS},coll-float`, {}, '-d', 'int32');
    expect(line).toContain('CollNet'); // they report what 32-bit floats take
  });

  // Of three the last one is alone on its host, and the others are a chain.
  it.each([2, 3])('all of %i GPUs learn at once that a member of the group was killed', async (count) => {
    await using steering = await Steering.open();
    const argv = ['--json', '-n', String(count), '--simulate-hosts', '2', ...steering.options, steering.program];
    await using command = Command.start(argv, { environment: environment(IN_GPUS) });
    const ranks = await steering.ranks(count);
    const last = await steering.rank(count - 1);
    await Promise.all(ranks.map((rank) => rank.init()));
    expect(await Promise.all(ranks.map((rank) => rank.allReduce(1)))).toEqual(ranks.map(() => [count]));
    const others = ranks.slice(0, -1);
    const waiting = others.map((rank) => rank.allReduce(1).catch((error: unknown) => error));
    process.kill(last.pid, 'SIGKILL');
    for (const ended of await Promise.all(waiting)) expect(ended).toBeInstanceOf(Error);
    const { failures } = parseResult((await command.outcome).stdout);
    expect(failures[0]).toMatchObject({ rank: count - 1, signal: 'SIGKILL' });
  });

  const programs = gpuPrograms();
  it.each([
    [`graphs 4 10 ${GRAPH_BYTES}`, `graphs: 4 ranks, 10 replays, up to ${GRAPH_BYTES} bytes: right`],
    ['abort_alone 2', 'abort_alone: 2 ranks: those who did not wait went on'],
    ['leave 3', 'leave: 3 ranks: who needed it was told, and nobody else'],
    ['slots 2 3 2', 'slots: 2 ranks, 3 communicators, 2 aborts: right'],
  ])(
    'the program %s succeeds on two hosts whose network reduces',
    (line, says) => programs.expectOnHosts(2, line, says, environment(IN_GPUS, { NCCL_MAX_NCHANNELS: '4' })),
    240_000,
  );
});

describeIf(noStandInKernels, 'the kernels’ own code and a network that reduces', () => {
  beforeAll(() => {
    buildStandInKernels(isWhole ? null : ['bytes', 'float32_float64']); // each takes long to compile
    buildGpuDirect();
  }, 900_000);

  it.each([
    ['prod', 'double', 3] as const,
    ...inFull([['avg', 'half', 4] as const, ['max', 'int8', 2] as const, ['avg', 'bfloat16', 5] as const]),
  ])('give the exact %s of %s on %i ranks of 2 hosts', async (op, type, ranks) => {
    const sizes = ['-b', '1K', '-e', '300K', '-f', '17', '--iters', '2', '--warmup', '1', '-c', '1'];
    const words = ['perf', 'all_reduce', '-n', String(ranks), '--simulate-hosts', '2', '-d', type, '-o', op, ...sizes];
    const wishes = { ...fewThreads, NCCLRUN_STAND_IN_KERNELS: '' };
    const { status, stdout, stderr } = await Command.run(words, { environment: environment(IN_GPUS, wishes) });
    expect({ status, isRight: stdout.includes(' 0 OK') }, stderr).toEqual({ status: 0, isRight: true });
  });
});
