import { join } from 'node:path';
import * as v from 'valibot';
import { repository } from '../../test/rig/cluster.ts';
import type { Figure, Goal } from '../figure.ts';
import { median, runCommand } from '../measure.ts';

/** Sizes of one run share a number of iterations, so that a run takes about a second. */
const ranges = [
  { begin: 16, end: 16 << 10, warmup: 200, iterations: 2000 },
  { begin: 64 << 10, end: 1 << 20, warmup: 20, iterations: 200 },
  { begin: 4 << 20, end: 64 << 20, warmup: 3, iterations: 10 },
] as const;
const FACTOR = 4;

const perfDocument = v.object({
  rows: v.array(v.object({ bytes: v.number(), inPlace: v.boolean(), timeUs: v.number() })),
});

type Times = Map<number, number>;
type Range = (typeof ranges)[number];

function goalFor(bytes: number): Goal {
  if (bytes < 4096) return { kind: 'at-most', bound: 3 };
  return { kind: 'ratio', factor: bytes < 65_536 ? 1 : 1 / 1.5, against: ['openmpi', 'mpich'] };
}

async function ours(collective: string, { begin, end, warmup, iterations }: Range): Promise<Times> {
  const sizes = ['-b', String(begin), '-e', String(end), '-f', String(FACTOR)];
  const repeats = ['--warmup', String(warmup), '--iters', String(iterations)];
  const argv = [join(repository, 'bin/ncclrun'), 'perf', collective, '-n', '2', ...sizes, ...repeats, '--json'];
  const finished = await runCommand(argv);
  if (finished.status !== 0) {
    process.stderr.write(`  ncclrun perf: status ${finished.status}: ${finished.stderr.trim().split('\n')[0] ?? ''}\n`);
    return new Map();
  }
  const { rows } = v.parse(perfDocument, JSON.parse(finished.stdout));
  return new Map(rows.filter((row) => !row.inPlace).map((row) => [row.bytes, row.timeUs]));
}

async function theirs(argv: readonly string[], environment: NodeJS.ProcessEnv, range: Range): Promise<Times> {
  const { begin, end, warmup, iterations } = range;
  const parameters = [begin, end, FACTOR, warmup, iterations].map(String);
  const finished = await runCommand([...argv, ...parameters], { environment, limitMs: 60_000 });
  const lines = finished.stdout
    .trim()
    .split('\n')
    .map((text) => text.split(' ').map(Number));
  return new Map(lines.flatMap(([bytes, time]) => (bytes !== undefined && time !== undefined ? [[bytes, time]] : [])));
}

/** Mean time of back-to-back collectives of floats, two ranks of one machine, out of place; `collective` as in `ncclrun perf`. */
function sharedMemory(collective: string): Figure {
  return {
    name: collective.replace('_', '-'),
    title: `${collective} of floats, 2 ranks, shared memory, out of place`,
    unavailable: () => null,
    async *run({ programs, samples }) {
      for (const range of ranges) {
        const contestants: [string, () => Promise<Times>][] = [['ours', () => ours(collective, range)]];
        for (const peer of programs.peers) {
          const argv = [...peer.launch(2, [], 2), await programs.forPeer(peer, 'mpi_collective'), collective];
          contestants.push([peer.name, () => theirs(argv, peer.environment, range)]);
        }
        const taken = new Map(contestants.map(([name]) => [name, new Array<Times>()]));
        for (let round = 0; round < samples; round++) {
          for (const [name, measure] of contestants) taken.get(name)?.push(await measure());
        }
        for (let bytes: number = range.begin; bytes <= range.end; bytes *= FACTOR) {
          const medians = [...taken].map(([name, runs]) => [name, median(runs.map((run) => run.get(bytes) ?? null))]);
          const { ours: mine = null, ...peers }: Record<string, number | null> = Object.fromEntries(medians);
          yield { what: `${bytes} B`, unit: 'µs', ours: mine, peers, goal: goalFor(bytes) };
        }
      }
    },
  };
}

export const collectives: readonly Figure[] = [
  'all_reduce',
  'all_gather',
  'broadcast',
  'alltoall',
  'reduce_scatter',
].map(sharedMemory);
