/** All-reduces that the network reduces on the way (CollNet), by the double of a plugin: what takes them, and what happens where it cannot. */
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { describeIf } from '../rig/capability.ts';
import { Command } from '../rig/command.ts';
import { noCompiler } from '../rig/gpu-programs.ts';
import { buildMatrix, runMatrix } from '../rig/matrix.ts';
import { buildNativeTests, nativeTests } from '../rig/native-tests.ts';
import { parseResult } from '../rig/result.ts';
import { Steering } from '../rig/steering.ts';

const collnet = (double = '', algorithms = 'allreduce:collnet') => ({
  ...process.env,
  NCCL_ALGO: algorithms,
  NCCLRUN_DEVICE: 'host',
  NCCL_NET_PLUGIN: join(nativeTests, 'net/libnccl-net-double-v12.so'),
  NCCL_COLLNET_ENABLE: '1',
  NCCLRUN_NET_DOUBLE: double,
});

/** What ranks say of their all-reduces, and why. */
async function said(double: string, ...argv: string[]): Promise<readonly string[]> {
  const environment = { ...collnet(double), NCCL_DEBUG: 'INFO', NCCL_DEBUG_SUBSYS: 'INIT,NET,TUNING' };
  const words = ['perf', 'all_reduce', '-n', '2', '--simulate-hosts', '2', '-b', '64', '-e', '64', '-c', '1', ...argv];
  const { status, stderr, stdout } = await Command.run(words, { environment });
  expect({ status, right: stdout.includes(' 0 OK') }, stderr).toEqual({ status: 0, right: true });
  const lines = `${stdout}\n${stderr}`.match(/(?<=simulated-\d: )(all_reduce|no collective network): .*/gu);
  return [...new Set(lines)].toSorted();
}

const BY_NETWORK = 'all_reduce: larger: CollNet, Simple, 1 channels';

describeIf(noCompiler, 'a network that reduces', () => {
  beforeAll(() => {
    buildMatrix();
    buildNativeTests('net_double_v12');
  }, 900_000);

  it.each([
    [2, 2, 'strict-close', 'allreduce:collnet'],
    [4, 2, 'strict-close,done-after=3', 'allreduce:collnet'],
    [6, 2, '', 'allreduce:collnet'],
    [3, 3, 'null-request=1', 'allreduce:collnet'],
    [5, 2, 'done-after=3', 'allreduce:collnet'],
    [6, 2, 'null-request=1', 'allreduce:CollnetChain'],
    [3, 3, '', 'COLLNETCHAIN'],
  ])('every type and operator is right on %i ranks of %i hosts (%s, %s)', (ranks, hosts, double, algorithms) =>
    runMatrix(ranks, ['-n', String(ranks), '--simulate-hosts', String(hosts), '--tag-output=none'], {
      seed: ranks,
      part: 40,
      environment: collnet(double, algorithms),
    }),
  );

  it('ranks reduce themselves where that is predicted to be faster', async () => {
    expect(await said('', '-x', 'NCCL_ALGO=')).toEqual(['all_reduce: larger: one-shot direct, Simple, 1 channels']);
  });

  it('all-reduces are its own, but of types and operators that it lacks', async () => {
    expect(await said('')).toEqual([BY_NETWORK]);
    expect(await said('coll-float', '-d', 'int32')).toEqual([BY_NETWORK]); // they report what 32-bit floats take
  });

  it.each([
    [['-n', '3'], 'CollNet chains'],
    [['-n', '4', '-x', 'NCCL_ALGO=collnetchain'], 'CollNet chains'],
    [['-n', '4', '-x', 'NCCL_ALGO=CollnetDirect'], 'CollNet'],
  ])('hosts have chains where their ranks are no equal numbers, or NCCL_ALGO wants them: %j', async (argv, form) => {
    const [line, ...others] = await said('', ...argv);
    expect(line?.match(/(?<=: )\w+( chains)?(?=, Simple)/gu)).toEqual([form, form]);
    expect(others).toEqual([]);
  });

  it.each([
    ['coll-fails=2', 'connect: system error (2); its last warning: no tree is left for this group'],
    ['coll-none=1', 'finds no device on this host'],
    ['coll-lacks=1', 'has no getProperties'],
    ['coll-init-error=3', 'init: internal error (3); its last warning: no aggregation manager answers'],
    ['coll-null=1', 'connect made no group'],
  ])('all ranks reduce themselves where it fails (%s), and say why', async (double, why) => {
    const lines = await said(double);
    expect(lines).toContain('all_reduce: larger: one-shot direct, Simple, 1 channels');
    expect(lines).not.toContain(BY_NETWORK);
    expect(lines.find((line) => line.startsWith('no collective network: ') && line.endsWith(why))).toBeDefined();
  });

  it('the others learn at once that a member of the group was killed', async () => {
    await using steering = await Steering.open();
    const argv = ['--json', '-n', '2', '--simulate-hosts', '2', ...steering.options, steering.program];
    await using command = Command.start(argv, { environment: collnet() });
    const [first, second] = await steering.ranks(2);
    if (first === undefined || second === undefined) throw new Error('there are two ranks');
    await Promise.all([first.init(), second.init()]);
    expect(await Promise.all([first.allReduce(1), second.allReduce(1)])).toEqual([[2], [2]]);
    const waiting = first.allReduce(1).catch((error: unknown) => error);
    process.kill(second.pid, 'SIGKILL');
    expect(await waiting).toBeInstanceOf(Error);
    const { failures } = parseResult((await command.outcome).stdout);
    expect(failures[0]).toMatchObject({ rank: 1, signal: 'SIGKILL' });
  });
});
