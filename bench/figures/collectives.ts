import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import * as v from 'valibot';
import { clusterUnavailable } from '../../test/rig/capability.ts';
import { Cluster, repository } from '../../test/rig/cluster.ts';
import { whileNear } from '../cores.ts';
import type { Figure, FigureContext, Goal, Row } from '../figure.ts';
import { inside, listening } from '../inside.ts';
import { median, runCommand } from '../measure.ts';

/** Sizes of one run share a number of iterations. Each warms up until the launchers have come to rest, who share the two cores. */
const ranges = [
  { begin: 16, end: 16 << 10, warmup: 20_000, iterations: 10_000 },
  { begin: 64 << 10, end: 1 << 20, warmup: 2_000, iterations: 500 },
  { begin: 4 << 20, end: 16 << 20, warmup: 150, iterations: 30 },
  { begin: 64 << 20, end: 64 << 20, warmup: 15, iterations: 10 },
] satisfies Range[];
const rangesBetweenHosts = [
  { begin: 16, end: 16 << 10, warmup: 1_000, iterations: 1_000 },
  { begin: 64 << 10, end: 1 << 20, warmup: 500, iterations: 200 },
  { begin: 4 << 20, end: 16 << 20, warmup: 40, iterations: 20 },
] satisfies Range[];
const FACTOR = 4;
const CORES = availableParallelism();

const perfDocument = v.object({
  rows: v.array(v.object({ bytes: v.number(), inPlace: v.boolean(), timeUs: v.number() })),
});

type Times = Map<number, number>;
interface Range {
  readonly begin: number;
  readonly end: number;
  readonly warmup: number;
  readonly iterations: number;
}

function goalFor(bytes: number): Goal {
  if (bytes < 4096) return { kind: 'at-most', bound: 3 };
  return { kind: 'ratio', factor: bytes < 65_536 ? 1 : 1 / 1.5, against: ['openmpi', 'mpich'] };
}

/** Two ranks of this machine, or so many on each host of a cluster. */
interface Place {
  readonly cluster: Cluster | null;
  readonly perHost: number;
}

function hostsOf({ cluster }: Place): string[] {
  return cluster?.hosts.map((host) => host.name) ?? [];
}

function ranksOf(place: Place): number {
  return place.perHost * Math.max(hostsOf(place).length, 1);
}

/** The ranks take turns on the cores, which hosts of a cluster share as well. */
function isCrowded(place: Place): boolean {
  return ranksOf(place) > CORES;
}

async function ours(collective: string, { begin, end, warmup, iterations }: Range, place: Place): Promise<Times> {
  const hosts = hostsOf(place).map((host) => `${host}:${place.perHost}`);
  const ranks = ['-n', String(ranksOf(place)), ...(hosts.length > 0 ? ['-H', hosts.join(',')] : [])];
  const sizes = ['-b', String(begin), '-e', String(end), '-f', String(FACTOR)];
  const repeats = ['--warmup', String(warmup), '--iters', String(iterations)];
  const argv = [
    join(repository, 'bin/ncclrun'),
    'perf',
    collective,
    '--device',
    'host',
    ...ranks,
    ...sizes,
    ...repeats,
    '--json',
  ];
  const finished = await runCommand(argv, { cluster: place.cluster });
  if (finished.status !== 0) {
    process.stderr.write(`  ncclrun perf: status ${finished.status}: ${finished.stderr.trim().split('\n')[0] ?? ''}\n`);
    return new Map();
  }
  const { rows } = v.parse(perfDocument, JSON.parse(finished.stdout));
  return new Map(rows.filter((row) => !row.inPlace).map((row) => [row.bytes, row.timeUs]));
}

async function theirs(
  argv: readonly string[],
  environment: NodeJS.ProcessEnv,
  { begin, end, warmup, iterations }: Range,
  { cluster }: Place,
): Promise<Times> {
  const parameters = [begin, end, FACTOR, warmup, iterations].map(String);
  const finished = await runCommand([...argv, ...parameters], { environment, cluster, limitMs: 60_000 });
  return timesOf(finished.stdout);
}

/** Of lines with bytes and microseconds. */
function timesOf(output: string): Times {
  const lines = output
    .trim()
    .split('\n')
    .map((text) => text.split(' ').map(Number));
  return new Map(lines.flatMap(([bytes, time]) => (bytes !== undefined && time !== undefined ? [[bytes, time]] : [])));
}

/** Half of what each rank of two holds stays there, but of an all_reduce, where each needs all that the other has. */
const sentOf = (collective: string, bytes: number): number => (collective === 'all_reduce' ? bytes : bytes / 2);

/** The same bytes each way over one TCP connection, without a reduction or a copy between buffers: the floor of any engine here. */
async function rawExchange(program: string, collective: string, range: Range, { cluster }: Place): Promise<Times> {
  const [first, second] = cluster?.hosts ?? [];
  if (first === undefined || second === undefined) return new Map();
  const [begin, end] = [sentOf(collective, range.begin), sentOf(collective, range.end)];
  const words = [begin, end, FACTOR, range.warmup, range.iterations].map(String);
  const peer = await listening(inside(second, program, ['exchange-at', second.address, ...words]));
  const over = once(peer.child, 'exit');
  const { stdout } = await runCommand(inside(first, program, ['exchange', second.address, peer.where, ...words]), {
    limitMs: 60_000,
  });
  await over;
  const whole = begin === range.begin ? 1 : 2;
  return new Map([...timesOf(stdout)].map(([bytes, time]) => [whole * bytes, time]));
}

/** Medians of the mean time of back-to-back collectives of floats, out of place; `collective` as in `ncclrun perf`. */
async function* compare(
  collective: string,
  range: Range,
  place: Place,
  { programs, samples }: FigureContext,
): AsyncGenerator<Omit<Row, 'goal'> & { readonly bytes: number }> {
  const contestants: [string, () => Promise<Times>][] = [['ours', () => ours(collective, range, place)]];
  for (const peer of programs.peers) {
    const { yielding } = peer;
    if (isCrowded(place) && place.cluster === null && yielding === null) continue;
    const launch = peer.launch(ranksOf(place), hostsOf(place), place.perHost);
    const argv = [...launch, await programs.forPeer(peer, 'mpi_collective'), collective];
    const environment = { ...peer.environment, ...(isCrowded(place) ? yielding : {}) };
    contestants.push([peer.name, () => theirs(argv, environment, range, place)]);
  }
  if (place.cluster !== null && place.perHost === 1) {
    const raw = await programs.plain('raw_tcp');
    contestants.push(['raw', () => rawExchange(raw, collective, range, place)]);
  }
  const taken = new Map(contestants.map(([name]) => [name, new Array<Times>()]));
  for (let round = 0; round < samples; round++) {
    for (const [name, measure] of contestants) {
      taken.get(name)?.push(await whileNear(programs, measure));
    }
  }
  for (let bytes: number = range.begin; bytes <= range.end; bytes *= FACTOR) {
    const medians = [...taken].map(([name, runs]) => [name, median(runs.map((run) => run.get(bytes) ?? null))]);
    const { ours: mine = null, ...peers }: Record<string, number | null> = Object.fromEntries(medians);
    yield { bytes, what: `${bytes} B`, unit: 'µs', ours: mine, peers };
  }
}

/** Where ranks take turns on the cores, an operation takes as many times longer as the kernel likes. */
function shortened(range: Range): Range {
  return { ...range, warmup: Math.ceil(range.warmup / 20), iterations: Math.ceil(range.iterations / 20) };
}

/** Where ranks outnumber cores, with a twentieth of the operations. */
export async function* compareAll(
  collective: string,
  all: readonly Range[],
  place: Place,
  context: FigureContext,
): ReturnType<typeof compare> {
  for (const range of all) yield* compare(collective, isCrowded(place) ? shortened(range) : range, place, context);
}

function sharedMemory(collective: string, ranks: number): Figure {
  return {
    name: collective.replace('_', '-') + (ranks === 2 ? '' : `-${ranks}`),
    title: `${collective} of floats, ${ranks} ranks, shared memory, out of place`,
    unavailable: () => null,
    async *run(context) {
      const place = { cluster: null, perHost: ranks };
      for await (const { bytes, ...row } of compareAll(collective, ranges, place, context)) {
        yield { ...row, goal: goalFor(bytes) };
      }
    },
  };
}

/** Of two ranks, and of four, which on two cores have to give way to each other. */
export const collectives: readonly Figure[] = [2, 4].flatMap((ranks) =>
  ['all_reduce', 'all_gather', 'broadcast', 'alltoall', 'reduce_scatter'].map((name) => sharedMemory(name, ranks)),
);

/** Over TCP, between hosts that are namespaces of this machine. */
function betweenHosts(collective: string): Figure {
  return {
    name: `${collective.replace('_', '-')}-hosts`,
    title: `${collective} of floats, 2 hosts × 1 and × 2 ranks, TCP, out of place`,
    unavailable: clusterUnavailable,
    async *run(context) {
      await using cluster = await Cluster.start(2);
      for (const perHost of [1, 2]) {
        for await (const { bytes, ...row } of compareAll(
          collective,
          rangesBetweenHosts,
          { cluster, perHost },
          context,
        )) {
          const factor = perHost === 1 && bytes >= 65_536 ? 1 / 1.5 : 1;
          const goal: Goal = { kind: 'ratio', factor, against: ['openmpi', 'mpich'] };
          yield { ...row, what: `2×${perHost}, ${bytes} B`, goal };
        }
      }
    },
  };
}
export const collectivesBetweenHosts: readonly Figure[] = ['all_reduce', 'all_gather', 'alltoall'].map(betweenHosts);
