/**
 * node bench/planner.ts [--json]: plans for hosts of eight GPUs, from one to 12,500: everything that is decided, then each rank's neighbours in every
 * channel, ring and tree, and its channel to another rank. Printed: time, growth, memory.
 */
import { parseArgs } from 'node:util';
import { planCluster } from '../control/planner/cluster/plan-cluster.ts';
import { channelOfPair, pointToPoint } from '../control/planner/cluster/point-to-point.ts';
import { eightGpus } from '../test/rig/eight-gpus.ts';

const HOST_COUNTS = [1, 125, 1250, 12_500];
const REPETITIONS = 3;

interface Row {
  readonly hosts: number;
  readonly ranks: number;
  readonly channels: number;
  readonly planMs: number;
  /** Of all ranks. */
  readonly neighboursMs: number;
  readonly residentMegabytes: number;
}

function measure(hosts: number): Row {
  const system = eightGpus();
  const start = performance.now();
  const { cluster } = planCluster([{ system, hosts, ranksPerHost: null }]);
  const planned = performance.now();
  const messages = pointToPoint(cluster);
  let edges = 0;
  for (let rank = 0; rank < cluster.ranks; rank++) {
    for (let channel = 0; channel < cluster.channels; channel++) {
      edges += cluster.ringNeighbours(rank, channel).next.rank >= 0 ? 1 : 0;
      edges += cluster.treeNeighbours(rank, channel).children.length;
    }
    edges += channelOfPair(messages, cluster.ranks, [rank, 0], 'sends', 0) >= 0 ? 1 : 0;
  }
  const done = performance.now();
  if (edges < cluster.ranks) throw new Error('ranks without neighbours');
  const { ranks, channels } = cluster;
  const residentMegabytes = process.memoryUsage.rss() / 1e6;
  return { hosts, ranks, channels, planMs: planned - start, neighboursMs: done - planned, residentMegabytes };
}

function median(hosts: number): Row {
  const rows = Array.from({ length: REPETITIONS }, () => measure(hosts)).toSorted(
    (one, other) => one.planMs + one.neighboursMs - other.planMs - other.neighboursMs,
  );
  const middle = rows[Math.floor(REPETITIONS / 2)];
  if (middle === undefined) throw new RangeError('no repetition was measured');
  return middle;
}

const { values } = parseArgs({ options: { json: { type: 'boolean', default: false } } });
const rows = HOST_COUNTS.map(median);
if (values.json) {
  process.stdout.write(`${JSON.stringify({ rows })}\n`);
} else {
  process.stdout.write('     hosts     ranks  channels   plan ms  neighbours ms  per rank µs  RSS MB\n');
  for (const { hosts, ranks, channels, planMs, neighboursMs, residentMegabytes } of rows) {
    const perRank = ((planMs + neighboursMs) * 1000) / ranks;
    const numbers: readonly (readonly [number, number, number])[] = [
      [hosts, 10, 0],
      [ranks, 10, 0],
      [channels, 10, 0],
      [planMs, 10, 1],
      [neighboursMs, 15, 1],
      [perRank, 13, 2],
      [residentMegabytes, 8, 0],
    ];
    process.stdout.write(
      `${numbers.map(([value, width, digits]) => value.toFixed(digits).padStart(width)).join('')}\n`,
    );
  }
}
