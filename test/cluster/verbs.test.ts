/** Hosts with RoCE cards: ranks exchange data over them, go on when a port fails, and say what is wrong when none is left. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { compileWithEngine } from '../rig/compile.ts';
import { buildMatrix, runMatrix } from '../rig/matrix.ts';
import { nativeTests } from '../rig/native-tests.ts';
import { buildStandIn, ownKernels, standInEnvironment } from '../rig/stand-in.ts';
import { Steering } from '../rig/steering.ts';
import { VerbsCluster } from '../rig/verbs-cluster.ts';
import { sampleSize } from '../rig/whole.ts';

const exportsOf = (all: Readonly<Record<string, string>>): string[] =>
  Object.entries(all).flatMap(([name, value]) => ['-x', `${name}=${value}`]);

/** So that a port that is down, or a peer that is gone, is told in tenths of a second. */
const quick = exportsOf({ NCCL_IB_TIMEOUT: '14', NCCL_IB_RETRY_CNT: '3', NCCL_DEBUG: 'WARN' });
const [BOTH, TWO_EACH] = [
  ['-H', 'h1:1,h2:1'],
  ['-H', 'h1:2,h2:2'],
];
const ELEMENTS = String(4 * 2 ** 20);

async function roundAfter(command: Command, rounds: number): Promise<number> {
  const line = await command.line('stdout', new RegExp(`sum ${rounds}$`, 'u'));
  return Number(line.replace(/.*sum /u, ''));
}

describeIf(clusterUnavailable(), 'RoCE between hosts', () => {
  let verbs: VerbsCluster;
  let directory = '';
  let [sums, fork] = ['', ''];
  beforeAll(async () => {
    buildMatrix();
    buildStandIn();
    directory = await mkdtemp(join(repository, 'build/test-verbs-'));
    sums = await compileWithEngine('test/rig/programs/large-sums.c', directory);
    fork = await compileWithEngine('test/rig/programs/fork.c', directory);
    verbs = await VerbsCluster.start(3);
  }, 900_000);
  afterEach(() => verbs.mend());
  afterAll(async () => {
    await verbs[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  });

  const run = (...words: readonly string[]): ReturnType<typeof Command.run> =>
    Command.run(words, { cluster: verbs.cluster });

  it('ranks of two hosts add up and send around over both cards', async () => {
    const { status, stdout, stderr } = await run(...TWO_EACH, '-x', 'NCCL_DEBUG=INFO', sums, ELEMENTS, '3');
    expect({ status, ends: stdout.match(/ok 3/gu)?.length }, stderr).toEqual({ status: 0, ends: 4 });
    expect(stderr).toMatch(
      /NICs: h1 uses mlx5_0 .*10\.77\.0\.11.*, mlx5_1 .*10\.80\.0\.11.*; h2 uses mlx5_0 .*10\.77\.0\.12.*, mlx5_1 .*10\.80\.0\.12.*: h1 has 2 active RoCE ports/u,
    );
    expect(stderr).toMatch(/rank 1 of 4 on h1: channel 0: ring to rank 2 by InfiniBand/u);
    expect(stderr).toMatch(/rank 1 of 4 on h1: channel 0: ring from rank 0 by shared memory/u);
  });

  it.each<Record<string, string>>([
    {},
    { NCCL_IB_QPS_PER_CONNECTION: '3' },
    { NCCL_IB_QPS_PER_CONNECTION: '2', NCCL_IB_SPLIT_DATA_ON_QPS: '1' },
    { NCCL_IB_HCA: '=mlx5_1', NCCL_IB_USE_INLINE: '0' },
  ])('collectives of four ranks give exact results with %j', (variables) =>
    runMatrix(4, [...TWO_EACH, '--tag-output=none', ...exportsOf(variables)], {
      cluster: verbs.cluster,
      seed: 5,
      part: sampleSize(20, 40),
    }),
  );

  it.each(['h1:1,h2:1', 'h1:2,h2:2'])('collectives on GPUs of %s give exact results', async (hosts) => {
    const words = ['-H', hosts, '--tag-output=none', ...exportsOf({ ...standInEnvironment, ...ownKernels })];
    const ranks = hosts === 'h1:1,h2:1' ? 2 : 4;
    await runMatrix(ranks, words, { cluster: verbs.cluster, seed: ranks, part: sampleSize(20, 40) });
    const { stderr } = await run(...words, '-x', 'NCCL_DEBUG=INFO', join(nativeTests, 'matrix'), '1', '400');
    expect(stderr).toMatch(/NICs: h1 uses mlx5_0 .*, mlx5_1 /u);
    expect(stderr).toMatch(/GPU of rank 0 on host h1, NIC mlx5_1: /u);
  });

  /** A job of large sums that ends when its standard input does. */
  const start = (...options: readonly string[]): Command =>
    Command.start([...options, '--tag-output=rank', sums, ELEMENTS, '0'], {
      cluster: verbs.cluster,
      stdin: 'pipe',
    });

  it.each(['h1', 'h2'])(
    'sums go on and stay right when a port of %s goes down, and both ports are named',
    async (host) => {
      await using command = start(...TWO_EACH, ...quick);
      await roundAfter(command, 1);
      verbs.plant(host, 'port=down device=mlx5_0');
      const warning = await command.line('stderr', /WARN/u);
      expect(warning).toMatch(
        /NCCL WARN the connection with 10\.77\.0\.1[12] .*moves from mlx5_0 port 1, GID ::ffff:10\.77\.0\.1[12] to mlx5_1 port 1, GID ::ffff:10\.80\.0\.1[12]: /u,
      );
      command.process.stdin?.end();
      const { status, stdout, stderr } = await command.outcome;
      expect({ status, ends: stdout.match(/ok \d+/gu)?.length }, stderr).toEqual({ status: 0, ends: 4 });
    },
  );

  it.each<[string, Readonly<Record<string, string>>, string]>([
    ['processors', {}, 'status=12 after=30 device=mlx5_0'],
    ['processors', { NCCL_IB_QPS_PER_CONNECTION: '2' }, 'status=12 after=40 device=mlx5_1 delivered=1'],
    ['GPUs', { ...standInEnvironment, ...ownKernels }, 'status=12 after=100 device=mlx5_0'],
    ['GPUs', { ...standInEnvironment, ...ownKernels }, 'status=12 after=100 device=mlx5_1 delivered=1'],
  ])('collectives of %s give exact results with %j though a request ends with %s', async (_, variables, fault) => {
    verbs.plant('h2', fault);
    const words = [...TWO_EACH, ...quick, ...exportsOf(variables), '--tag-output=none'];
    const { stdout, stderr } = await run(...words, join(nativeTests, 'matrix'), '7', '20');
    expect(stdout, stderr).toMatch(/^\d{3,} cases on 4 ranks: 0 wrong$/mu);
    expect(stderr).toMatch(/moves from mlx5_[01] .* to mlx5_[01] .*: .*transport retries exceeded/u);
  });

  it('a port that comes back serves when the other one fails', async () => {
    await using command = start(...BOTH, ...quick);
    await roundAfter(command, 1);
    verbs.plant('h1', 'port=down device=mlx5_0');
    await command.line('stderr', /from mlx5_0 .* to mlx5_1 /u);
    verbs.plant('h1', 'port=up device=mlx5_0', 'port=down device=mlx5_1');
    await command.line('stderr', /from mlx5_1 .* to mlx5_0 /u);
    command.process.stdin?.end();
    const { status, stderr } = await command.outcome;
    expect(status, stderr).toBe(0);
  });

  it('every rank fails with host, card, port and GID when all ports of a host are down', async () => {
    await using steering = await Steering.open();
    const argv = [...TWO_EACH, ...quick, ...steering.options, steering.program];
    await using command = Command.start(argv, { cluster: verbs.cluster });
    const ranks = await steering.ranks(4);
    await Promise.all(ranks.map((rank) => rank.init()));
    expect(await Promise.all(ranks.map((rank) => rank.allReduce(rank.rank)))).toEqual([[6], [6], [6], [6]]);
    verbs.plant('h1', 'port=down device=mlx5_0', 'port=down device=mlx5_1');
    // A sum may still come through before the cards see that their ports are down.
    const untilRejected = async (rank: (typeof ranks)[number]): Promise<never> => {
      for (;;) await rank.allReduce(1);
    };
    for (const outcome of await Promise.allSettled(ranks.map(untilRejected))) {
      expect(outcome).toMatchObject({ status: 'rejected' });
      const words = outcome.status === 'rejected' ? String(outcome.reason) : '';
      // The other side may have noticed first, and says so.
      expect(words).toMatch(
        /lost the connection with rank \d on host h\d: |rank \d on host h\d lost its connection with this rank: /u,
      );
      expect(words).toMatch(/mlx5_[01] port 1, GID ::ffff:10\.(77|80)\.0\.11/u);
      expect(words).toMatch(/no packet was acknowledged|no other port/u);
    }
    await Promise.all(ranks.map((rank) => rank.exit(1)));
    expect((await command.outcome).status).toBe(1);
  });

  it('ranks that wait for a killed one name it', async () => {
    await using steering = await Steering.open();
    const argv = [...TWO_EACH, '--on-failure', 'shrink', ...steering.options, steering.program];
    await using command = Command.start(argv, { cluster: verbs.cluster });
    const ranks = await steering.ranks(4);
    await Promise.all(ranks.map((rank) => rank.init()));
    expect(await Promise.all(ranks.map((rank) => rank.allReduce(rank.rank)))).toEqual([[6], [6], [6], [6]]);
    const waiting = Promise.allSettled(ranks.slice(0, 3).map((rank) => rank.allReduce(1)));
    await ranks[3]?.kill('SIGKILL');
    for (const outcome of await waiting) {
      expect(outcome).toMatchObject({ status: 'rejected' });
      if (outcome.status === 'rejected') expect(String(outcome.reason)).toMatch(/rank 3 (\(|on host )h2/u);
    }
    process.kill(command.pid, 'SIGTERM');
    expect((await command.outcome).status).not.toBe(0);
  });

  it('a job with a host without the library uses sockets, and says why', async () => {
    const words = ['-H', 'h1:1,h3:1', '-x', 'NCCL_DEBUG=INFO', sums, '1000', '2'];
    const { status, stderr } = await run(...words);
    expect(status, stderr).toBe(0);
    expect(stderr).toMatch(
      /NICs: h1 uses eth0 .*not IB: h3: \/run\/libibverbs\.so\.1: cannot open shared object file/u,
    );
    expect(stderr).toMatch(/ring to rank 1 by sockets/u);
  });

  it('NCCL_NET=IB is refused where a host has no InfiniBand, with the reason', async () => {
    const { status, stderr } = await run('-H', 'h1:1,h3:1', '-x', 'NCCL_NET=IB', sums, '1000', '2');
    expect(status).not.toBe(0);
    expect(stderr).toMatch(
      /NCCL_NET=IB: the hosts cannot reach each other so: h3: \/run\/libibverbs\.so\.1: cannot open shared object file/u,
    );
  });

  it('NCCL_NET=Socket and NCCL_IB_DISABLE=1 take sockets', async () => {
    for (const variable of ['NCCL_NET=Socket', 'NCCL_IB_DISABLE=1']) {
      const { status, stderr } = await run(...BOTH, '-x', variable, '-x', 'NCCL_DEBUG=INFO', sums, '1000', '2');
      expect(status, stderr).toBe(0);
      expect(stderr).toMatch(/ring to rank 1 by sockets/u);
      expect(stderr).toContain(`not IB: ${variable}`);
    }
  });

  it('a rank goes on when it forks after its memory was registered, however its children end', async () => {
    const { status, stdout, stderr } = await run(...BOTH, '--tag-output=none', fork, 'after');
    expect({ status, stdout }, stderr).toEqual({ status: 0, stdout: 'ok\nok\n' });
  });
});
