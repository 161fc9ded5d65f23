import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { clusterUnavailable } from '../../test/rig/capability.ts';
import { Cluster, repository, type ClusterHost } from '../../test/rig/cluster.ts';
import type { Figure, Goal } from '../figure.ts';
import { interleaved, launchMilliseconds, runCommand } from '../measure.ts';

const HOSTS = 8;
const goal: Goal = { kind: 'at-most', bound: 3000 };

interface Kind {
  readonly what: string;
  /** What such hosts get. */
  readonly format: 'zstd' | 'gzip';
  readonly change: (host: ClusterHost) => Promise<void>;
  readonly goal: Goal | null;
}

/** One after the other: each change stays. */
const kinds: readonly Kind[] = [
  { what: 'usual hosts', format: 'zstd', change: async () => {}, goal },
  {
    what: 'no zstd, no openssl',
    format: 'zstd',
    change: (host) => replace(host, '/dev/null', 'zstd', 'openssl'),
    goal,
  },
  // gzip alone takes longer than the goal where all hosts share two cores.
  {
    what: 'our unpacker does not run',
    format: 'gzip',
    change: (host) => replace(host, '/bin/true', 'chmod'),
    goal: null,
  },
];

/** The first job on eight hosts without ncclrun, beyond what copying the same archive to them takes. */
export const staging: Figure = {
  name: 'staging',
  title: `the first job on ${HOSTS} hosts without ncclrun, beyond copying the same archive by ssh "cat >FILE" to all at once`,
  unavailable: clusterUnavailable,
  async *run({ samples }) {
    await using cluster = await Cluster.start(HOSTS);
    for (const host of cluster.hosts) await host.hideInstallation();
    const own = await mkdtemp('/var/tmp/ncclrun-staging-');
    const environment = { XDG_CACHE_HOME: own };
    try {
      for (const { what, format, change, goal } of kinds) {
        await Promise.all(cluster.hosts.map(change));
        const cold = await firstJob(cluster, environment);
        yield { what: `${what}: the first of all`, unit: 'ms', ours: cold, peers: {}, goal: null };
        const archive = await archiveOf(join(own, 'ncclrun/bundles'), format);
        const medians = await interleaved(
          [
            { name: 'job', measure: () => firstJob(cluster, environment) },
            { name: 'copy', measure: () => copies(cluster, archive) },
          ],
          samples,
        );
        const [job, copy] = [medians.get('job') ?? null, medians.get('copy') ?? null];
        const beyond = job === null || copy === null ? null : job - copy;
        yield { what, unit: 'ms', ours: beyond, peers: { 'whole job': job, copy }, goal };
      }
    } finally {
      await rm(own, { recursive: true, force: true });
    }
  },
};

/** Milliseconds; every host's cache is empty before. */
async function firstJob(cluster: Cluster, environment: NodeJS.ProcessEnv): Promise<number | null> {
  await emptyCaches(cluster);
  const hosts = cluster.hosts.map(({ name }) => `${name}:1`).join(',');
  const argv = [join(repository, 'bin/ncclrun'), '-H', hosts, '/bin/true'];
  return launchMilliseconds(argv, { cluster, environment, limitMs: 120_000 });
}

async function copies(cluster: Cluster, archive: string): Promise<number | null> {
  await emptyCaches(cluster);
  const one = 'ssh -o BatchMode=yes "$host" "cat >~/.cache/archive" <"$0" &';
  const script = `for host; do ${one} done; wait`;
  const names = cluster.hosts.map(({ name }) => name);
  const { status, milliseconds } = await runCommand(['sh', '-c', script, archive, ...names], {
    cluster,
    limitMs: 120_000,
  });
  return status === 0 ? milliseconds : null;
}

async function emptyCaches(cluster: Cluster): Promise<void> {
  for (const host of cluster.hosts) {
    const cache = join(cluster.state, host.name, 'cache');
    const before = await rm(cache, { recursive: true }).then(
      () => true,
      () => false,
    );
    await mkdir(cache);
    if (before) await host.exec('umount', '-l', join(homedir(), '.cache'));
    await host.useCache(cache);
  }
}

async function archiveOf(directory: string, format: 'gzip' | 'zstd'): Promise<string> {
  const name = (await readdir(directory)).find((entry) => entry.endsWith(format === 'zstd' ? '.zst' : '.gz'));
  if (name === undefined) throw new Error(`no ${format} archive in ${directory}: the hosts took another form`);
  return join(directory, name);
}

async function replace(host: ClusterHost, by: string, ...tools: readonly string[]): Promise<void> {
  for (const tool of tools) {
    const path = (await host.exec('sh', '-c', 'readlink -f "$(command -v "$0")" || true', tool)).trim();
    if (path !== '') await host.exec('mount', '--bind', by, path);
  }
}
