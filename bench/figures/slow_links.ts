/** Four hosts whose cables carry 300 Mb/s each way, congestion control cubic: times beside the peers', and bytes on the wire beside theory. */
import { join } from 'node:path';
import { clusterUnavailable } from '../../test/rig/capability.ts';
import { Cluster, type ClusterHost, repository } from '../../test/rig/cluster.ts';
import type { Figure, FigureContext, Row } from '../figure.ts';
import { median, runCommand } from '../measure.ts';
import { compareAll } from './collectives.ts';

const HOSTS = 4;
export const RATE = '300mbit';
/** Of the ranks together, beside what the theory says, at most. */
const WIRE_FACTOR = 1.05;
const BYTES = 4 << 20;
/** compareAll() takes a twentieth of these where ranks outnumber cores. */
const range = { begin: BYTES / 4, end: BYTES, warmup: 40, iterations: 100 };

/** By the routes: a namespace may not choose what the machine's users may not. */
const cubic = 'ip route show dev eth0 | while read -r route; do ip route change $route dev eth0 congctl cubic; done';

export async function useCubic(host: ClusterHost): Promise<void> {
  await host.exec('sh', '-ec', cubic);
}

interface Subject {
  readonly collective: string;
  /** What an operation of `bytes` must carry between the hosts, one rank on each. */
  readonly theory: (bytes: number) => number;
}
const subjects: readonly Subject[] = [
  { collective: 'all_reduce', theory: (bytes) => 2 * (HOSTS - 1) * bytes },
  { collective: 'alltoall', theory: (bytes) => (HOSTS - 1) * bytes },
];

async function sentBytes(cluster: Cluster): Promise<number> {
  const each = await Promise.all(cluster.hosts.map((host) => host.sentBytes()));
  return each.reduce((sum, bytes) => sum + bytes, 0);
}

/** Bytes that all hosts have sent in a job with so many operations. */
async function sentWith(collective: string, iterations: number, cluster: Cluster): Promise<number> {
  const before = await sentBytes(cluster);
  const hosts = cluster.hosts.map(({ name }) => `${name}:1`).join(',');
  const size = ['-b', String(BYTES), '-e', String(BYTES), '--warmup', '1', '--iters', String(iterations)];
  const argv = [join(repository, 'bin/ncclrun'), 'perf', collective, '--device', 'host', '-H', hosts, ...size];
  const { status, stderr } = await runCommand(argv, { cluster, limitMs: 120_000 });
  if (status !== 0) throw new Error(`${argv.join(' ')}: status ${status}: ${stderr}`);
  return (await sentBytes(cluster)) - before;
}

/** What the second half of a long job sends: starting and ending are in both. */
async function onTheWire({ collective, theory }: Subject, cluster: Cluster, { samples }: FigureContext): Promise<Row> {
  const iterations = 5;
  const taken: number[] = [];
  for (let sample = 0; sample < samples; sample++) {
    const short = await sentWith(collective, iterations, cluster);
    const long = await sentWith(collective, 2 * iterations, cluster);
    taken.push((long - short) / (2 * iterations)); // out of place, then in place
  }
  const bound = Math.round(WIRE_FACTOR * theory(BYTES));
  const goal = { kind: 'at-most', bound } as const;
  return { what: `${collective} wire`, unit: 'B', ours: median(taken), peers: { theory: theory(BYTES) }, goal };
}

export const slowLinks: Figure = {
  name: 'slow-links',
  title: `collectives of floats, ${HOSTS} hosts × 1 rank, cables of 300 Mb/s, cubic`,
  unavailable: clusterUnavailable,
  async *run(context) {
    await using cluster = await Cluster.start(HOSTS);
    for (const host of cluster.hosts) {
      await useCubic(host);
      await host.rate(RATE);
    }
    for (const subject of subjects) {
      for await (const { bytes, ...row } of compareAll(subject.collective, [range], { cluster, perHost: 1 }, context)) {
        const goal = { kind: 'ratio', factor: 1, against: ['openmpi', 'mpich'] } as const;
        yield { ...row, what: `${subject.collective} ${bytes >> 20}M`, goal };
      }
      yield await onTheWire(subject, cluster, context);
    }
  },
};
