/** Random collectives over networks that lose, delay and slow down, and over a plugin that is late: every element is right. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, repository, type ClusterHost } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { compileWithEngine } from '../rig/compile.ts';
import { buildNativeTests, nativeTests } from '../rig/native-tests.ts';

/** Of each network; .ci/full network gives more. */
const SECONDS = Number(process.env['NCCLRUN_TEST_SOAK_SECONDS'] ?? 20);
/** What is drawn; the same for all ranks. */
const SEED = process.env['NCCLRUN_TEST_SEED'] ?? '42';

/** A plugin that takes requests late, completes them late, and every other one before the one in front of it. */
const latePlugin = {
  NCCL_NET_PLUGIN: join(nativeTests, 'net/libnccl-net-double-v12.so'),
  NCCLRUN_NET_DOUBLE: 'null-request=2,done-after=4,other-first,null-comm=3',
};

interface BadNetwork {
  readonly what: string;
  readonly worsen: (host: ClusterHost) => Promise<void>;
  /** By `rate`. */
  readonly isSlow?: true;
  readonly variables?: Readonly<Record<string, string>>;
}

const networks: readonly BadNetwork[] = [
  { what: 'loses every hundredth packet', worsen: (host) => host.loss(0.01) },
  { what: 'delays packets by 5 to 15 ms', worsen: (host) => host.delay(5, 10) },
  { what: 'carries 300 Mb/s', worsen: (host) => host.rate('300mbit'), isSlow: true },
  {
    what: 'loses, delays and slows down at once',
    async worsen(host) {
      await host.delay(1, 4);
      await host.rate('500mbit');
      await host.loss(0.003);
    },
    isSlow: true,
  },
  {
    what: 'is a plugin that is late, over a cable that loses packets',
    worsen: (host) => host.loss(0.003),
    variables: latePlugin,
  },
];

describeIf(clusterUnavailable(), 'random collectives over a bad network', () => {
  let cluster: Cluster;
  let directory: string;
  let program: string;
  beforeAll(async () => {
    buildNativeTests('net_double_v12');
    cluster = await Cluster.start(2);
    directory = await mkdtemp(join(repository, 'build/test-network-'));
    program = await compileWithEngine('test/rig/programs/random-collectives.c', directory);
  }, 300_000);
  afterAll(async () => {
    await cluster[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  });

  it.each(networks)(
    'every element is right where the network $what',
    { timeout: (SECONDS + 120) * 1000 },
    async ({ worsen, isSlow, variables = {} }) => {
      const host = cluster.host('h2');
      await worsen(host);
      const exported = Object.entries(variables).flatMap(([name, value]) => ['-x', `${name}=${value}`]);
      const words = ['-H', 'h1:2,h2:2', ...exported, program, String(SECONDS), SEED];
      const { status, stdout, stderr } = await Command.run(words, { cluster });
      await host.accept();
      await host.undelay();
      if (isSlow === true) await host.unrate();
      expect({ status, stderr }, stdout).toEqual({ status: 0, stderr: '' });
      expect(stdout).toMatch(/^\[0\] [1-9]\d* operations\n$/);
    },
  );
});
