/** All-reduces by an aggregator (--collnet) beside our ring, with cables of 300 Mb/s each way, congestion control cubic: times, and bytes on the wire. */
import { join } from 'node:path';
import * as v from 'valibot';
import { clusterUnavailable } from '../../test/rig/capability.ts';
import { Cluster, repository } from '../../test/rig/cluster.ts';
import type { Figure, FigureContext, Row } from '../figure.ts';
import { median, runCommand } from '../measure.ts';
import { RATE, useCubic } from './slow_links.ts';

const SIZES = [8 << 10, 256 << 10, 4 << 20, 64 << 20];
const LARGEST = 64 << 20;
/** Of what a host sends, beside the bytes that it contributes, at most. */
const WIRE_FACTOR = 1.05;
const BYTES_PER_JOB = 192 << 20;
const MAX_ITERATIONS = 200;

const perfDocument = v.object({ rows: v.array(v.object({ bytes: v.number(), timeUs: v.number() })) });

interface Contestant {
  readonly name: string;
  readonly words: readonly string[];
  readonly environment: NodeJS.ProcessEnv;
}

const ring: Contestant = {
  name: 'ring',
  words: [],
  environment: { NCCL_ALGO: 'allreduce:ring', NCCL_COLLNET_ENABLE: '0' },
};

interface Place {
  readonly cluster: Cluster;
  /** Those with a rank. */
  readonly hosts: readonly string[];
}

function iterationsOf(bytes: number): number {
  return Math.max(1, Math.min(MAX_ITERATIONS, Math.floor(BYTES_PER_JOB / bytes / 3)));
}

async function perf({ cluster, hosts }: Place, bytes: number, iterations: number, by: Contestant): Promise<number> {
  const where = ['--device', 'host', '-H', hosts.map((host) => `${host}:1`).join(',')];
  const size = ['-b', String(bytes), '-e', String(bytes), '--warmup', '1', '--iters', String(iterations)];
  const argv = [join(repository, 'bin/ncclrun'), 'perf', 'all_reduce', ...where, ...size, '--json', ...by.words];
  const finished = await runCommand(argv, { cluster, environment: by.environment, limitMs: 240_000 });
  if (finished.status !== 0) throw new Error(`${argv.join(' ')}: status ${finished.status}: ${finished.stderr}`);
  const { rows } = v.parse(perfDocument, JSON.parse(finished.stdout));
  return rows[0]?.timeUs ?? Number.NaN;
}

/** In turns. */
async function* times(place: Place, contestants: readonly Contestant[], samples: number): AsyncGenerator<Row> {
  for (const bytes of SIZES) {
    const taken = contestants.map((): number[] => []);
    for (let sample = 0; sample < samples; sample++) {
      for (const [index, contestant] of contestants.entries())
        taken[index]?.push(await perf(place, bytes, iterationsOf(bytes), contestant));
    }
    const [ours = null, ...others] = taken.map((each) => median(each));
    const peers = Object.fromEntries(others.map((time, index) => [contestants[index + 1]?.name ?? '', time]));
    const factor = place.hosts.length > 4 ? 0.7 : 0.75;
    const goal = bytes === LARGEST ? ({ kind: 'ratio', factor, against: ['ring'] } as const) : null;
    yield { what: `${place.hosts.length} hosts ${bytes >> 10}K`, unit: 'µs', ours, peers, goal };
  }
}

/** What one host sends for each byte that it contributes: the second half of a long job, for starting and ending are in both. */
async function onTheWire(place: Place, by: Contestant): Promise<number> {
  const host = place.cluster.host(place.hosts[0] ?? '');
  const sentWith = async (iterations: number): Promise<number> => {
    const before = await host.sentBytes();
    await perf(place, LARGEST / 8, iterations, by);
    return (await host.sentBytes()) - before;
  };
  const [short, long] = [await sentWith(4), await sentWith(12)];
  return (long - short) / (8 * 2); // out of place, then in place
}

/** `hosts` ranks, and one more host without any, whose cable is not slowed. */
async function* byServer(hosts: number, { samples }: FigureContext): AsyncGenerator<Row> {
  await using cluster = await Cluster.start(hosts + 1);
  for (const host of cluster.hosts) await useCubic(host);
  const names = cluster.hosts.map(({ name }) => name);
  const place = { cluster, hosts: names.slice(0, -1) };
  for (const name of place.hosts) await cluster.host(name).rate(RATE);
  const server = names.at(-1) ?? '';
  const ours: Contestant = {
    name: 'aggregator',
    words: ['--collnet-hosts', server],
    environment: { NCCL_ALGO: 'allreduce:collnetdirect' },
  };
  yield* times(place, [ours, ring], samples);
  const bound = Math.round((WIRE_FACTOR * LARGEST) / 8);
  yield {
    what: `${hosts} hosts wire`,
    unit: 'B',
    ours: await onTheWire(place, ours),
    peers: { ring: await onTheWire(place, ring), contribution: LARGEST / 8 },
    goal: { kind: 'at-most', bound },
  };
}

export const collnet: Figure = {
  name: 'collnet',
  title: 'all-reduces of floats by an aggregator on a host of its own, cables of 300 Mb/s, cubic',
  unavailable: clusterUnavailable,
  async *run(context) {
    for (const hosts of [4, 8]) yield* byServer(hosts, context);
  },
};
