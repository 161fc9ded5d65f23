/** --collnet on hosts that this machine plays: right sums through aggregators, and what happens without them. */
import { beforeAll, expect, it } from 'vitest';
import { Aggregators } from '../../worker/agent/aggregators.ts';
import { loadNative } from '../../worker/engine/load.ts';
import { describeIf } from '../rig/capability.ts';
import { Command } from '../rig/command.ts';
import { noCompiler } from '../rig/gpu-programs.ts';
import { descendants, signalFound } from '../rig/processes.ts';
import { buildMatrix, runMatrix } from '../rig/matrix.ts';

/** Without a word of the user, ranks that share a machine reduce faster themselves. */
const ASKED = { NCCL_ALGO: 'allreduce:collnet' };
const said = { ...process.env, ...ASKED, NCCL_DEBUG: 'INFO', NCCL_DEBUG_SUBSYS: 'TUNING' };
const perf = ['perf', 'all_reduce', '-b', '64', '-e', '64', '-c', '1'];
const hosts = (count: number, ranks = count): string[] => ['--simulate-hosts', `${count}`, '-n', `${ranks}`];

describeIf(noCompiler, 'all-reduces by aggregators', () => {
  beforeAll(buildMatrix, 900_000);

  it.each([
    [3, 3, '--collnet'],
    [4, 2, '--collnet=1'],
    [6, 3, '--collnet=2'],
  ])('every type and operator is right on %i ranks of %i hosts with %s', (ranks, count, option) =>
    runMatrix(ranks, [...hosts(count, ranks), option, '--tag-output=none'], {
      seed: ranks,
      part: 40,
      environment: { ...process.env, ...ASKED },
    }),
  );
});

/** Whether all-reduces are by the network with that value of NCCL_COLLNET_ENABLE. */
async function isChosen(value?: string): Promise<boolean> {
  const environment = value === undefined ? said : { ...said, NCCL_COLLNET_ENABLE: value };
  const { status, stdout, stderr } = await Command.run([...perf, ...hosts(2), '--collnet'], { environment });
  expect({ status, right: stdout.includes(' 0 OK') }, stderr).toEqual({ status: 0, right: true });
  return /all_reduce: .*CollNet/u.test(`${stdout}${stderr}`);
}

it('ranks reduce by aggregators, and with NCCL_COLLNET_ENABLE=0 themselves', async () => {
  expect([await isChosen(), await isChosen('1'), await isChosen('0')]).toEqual([true, true, false]);
});

it('the launcher says why ranks reduce without their aggregators', async () => {
  const { status, stdout, stderr } = await Command.run([...perf, ...hosts(4), '--collnet=1']);
  expect({ status, right: stdout.includes(' 0 OK') }, stderr).toEqual({ status: 0, right: true });
  const limit = 'the aggregator on simulated-1: its thread receives, reduces and sends 4 times 64 MiB';
  expect(stderr).toMatch(
    new RegExp(
      `^ncclrun: --collnet: the ranks reduce without the aggregators: through them 64 MiB would take [0-9.]+ ms instead of [0-9.]+ \\(${limit}\\); ` +
        'NCCL_ALGO=collnet uses them all the same$',
      'mu',
    ),
  );
});

it('ranks on one host have no aggregator, and the launcher says so', async () => {
  const { status, stderr } = await Command.run(['-n', '2', '--collnet', 'true']);
  const notice = 'ncclrun: --collnet: all ranks are on localhost, so there is nothing to reduce between hosts\n';
  expect({ status, stderr }).toEqual({ status: 0, stderr: notice });
});

it('a restarted job has aggregators again', async () => {
  const script = `[ $TORCHELASTIC_RESTART_COUNT = 1 ] || exit 3`;
  const words = ['-v', '--max-restarts', '1', ...hosts(2), '--collnet=1', 'sh', '-c', script];
  const { status, stderr } = await Command.run(words);
  expect({ status, starts: stderr.match(/: 1 aggregator: .* port [0-9]+\n/gu)?.length }).toEqual({
    status: 0,
    starts: 2,
  });
});

it('an agent says why an aggregator does not listen, and when one that did has ended', async () => {
  const lost = Promise.withResolvers<string>();
  const aggregators = new Aggregators(loadNative(), null, lost.resolve);
  const order = { count: 2, token: '00112233445566778899aabbccddeeff' };
  const elsewhere = await aggregators.start({ ...order, address: 'h9' });
  expect(elsewhere).toEqual({
    type: 'aggregating',
    ports: [],
    problem: 'the aggregator\'s address "h9" is no IPv4 or IPv6 address',
  });
  const { ports, problem } = await aggregators.start({ ...order, address: '127.0.0.1' });
  expect({ ports: ports.length, problem }).toEqual({ ports: 2, problem: null });
  const [first] = descendants(process.pid).filter(({ argv }) => argv[0]?.endsWith('-aggregator'));
  signalFound(first, 'SIGKILL');
  expect(await lost.promise).toBe('an aggregator was killed by SIGKILL; communicators that use it fail');
  aggregators.close();
  await aggregators.ended();
});

it.each([
  [['--collnet=65'], '--collnet is "65"\n  next: a whole number from 0 to 64 is wanted'],
  [
    ['--collnet-hosts', 'h9'],
    'h9 is none of the 2 hosts that this machine plays\n  next: they are simulated-1 to simulated-2',
  ],
])('the launcher refuses %j', async (option, message) => {
  const { status, stderr } = await Command.run([...hosts(2), ...option, 'true']);
  expect({ status, stderr }).toEqual({ status: 2, stderr: expect.stringContaining(message) });
});

it.each([
  [['-H', 'localhost:2,h2:2', '--collnet'], { localhost: 1, h2: 1 }],
  [['-H', 'localhost:2,h2:2,h3:2', '--collnet'], { h3: 1 }],
  [['-H', 'localhost:2,h2:2,h3:2', '--collnet=5'], { h3: 5 }],
  [['-H', 'localhost:2,h2:2', '--collnet=3'], { localhost: 2, h2: 1 }],
  [['-H', 'localhost:2,h2:2', '--collnet-hosts', 'h7,h8'], { h7: 1, h8: 1 }],
  [['-H', 'localhost:2,h2:2', '--collnet-hosts', 'h2,h8', '--collnet=1'], { h2: 1 }],
  [['-H', 'localhost:2,h2:2', '--collnet-hosts', 'h7', '--collnet=0'], {}],
])('aggregators of %j run where --dry-run says', async (words, counts) => {
  const { stdout } = await Command.run(['--dry-run', '--json', '-n', '4', ...words, 'true']);
  const { aggregators = [] }: { aggregators?: readonly { host: string; count: number }[] } = JSON.parse(stdout);
  expect(Object.fromEntries(aggregators.map(({ host, count }) => [host, count]))).toEqual(counts);
});
