/** The network between hosts, each pair measured by a job of two ranks, as `ncclrun perf net` does. */
import { firstRound, nextRounds, type HostPair } from '../doctor/rounds.ts';
import { betterWays, doubtfulPairs, type MeasuredWay } from '../doctor/pairs.ts';
import { perfPath } from '../local/host.ts';
import type { JobEvent, OutputChunk } from '../model/event.ts';
import type { JobResult, Reporter } from '../model/types.ts';
import { Limiter } from '../remote/shell/limiter.ts';
import { failureText } from '../report/failure-text.ts';
import { parseDisturbance, type Disturbance } from '../report/disturbance.ts';
import { MeasuredLines } from '../report/measured-lines.ts';
import {
  isMeasured,
  parseNetLine,
  type MeasuredPair as MeasuredNics,
  type NetHost,
  type NetPair,
} from '../report/net-rows.ts';
import type { DoctorJobs } from './doctor-jobs.ts';

/** Bytes of a message: enough to fill a link, and few enough for one that is far too slow. */
const BYTES = 2 ** 18;
const PACKET_BYTES = 1448;
/** Jobs at the same time. */
const AT_ONCE = 64;
/** So many doubtful pairs are measured one after the other, so that nothing of ours disturbs them. */
const MAX_ALONE = 8;

/** Both ways of every pair that was measured, and of those that failed. */
export async function measuredWays(jobs: DoctorJobs, hosts: readonly string[]): Promise<MeasuredWay[]> {
  const pairs = firstRound(hosts);
  const first = await measuredRound(jobs, pairs);
  const suspect = doubtfulPairs(first.flatMap(({ ways }) => ways));
  const measured = [...first];
  for (const round of nextRounds(hosts, pairs, suspect)) measured.push(...(await measuredRound(jobs, round)));
  const ways = measured.flatMap((pair) => pair.ways);
  const doubtful = doubtfulPairs(ways);
  const again = await measuredRound(jobs, doubtful, doubtful.length > MAX_ALONE ? AT_ONCE : 1);
  return betterWays(
    ways,
    again.flatMap((pair) => pair.ways),
  );
}

interface MeasuredPair {
  readonly pair: HostPair;
  readonly ways: readonly MeasuredWay[];
}

async function measuredRound(jobs: DoctorJobs, pairs: readonly HostPair[], atOnce = AT_ONCE): Promise<MeasuredPair[]> {
  const limiter = new Limiter(atOnce);
  const measured = async (pair: HostPair) => ({ pair, ways: await waysOf(jobs, pair) });
  return await Promise.all(pairs.map((pair) => limiter.within(() => measured(pair))));
}

async function waysOf(jobs: DoctorJobs, pair: HostPair): Promise<MeasuredWay[]> {
  const lines = new PairLines();
  await jobs.run(pair, [perfPath, 'net', String(BYTES), 'rail', 'disturbance'], lines);
  const name = (index: number): string => lines.hosts.find(({ host }) => host === index)?.name ?? pair[index] ?? '';
  const [failure] = lines.ended?.failures ?? [];
  const none = { rail: 0, rate: null, latencyUs: null, lost: null, waited: 0 };
  if (failure !== undefined || lines.pairs.length === 0) {
    const { sentence, details } =
      failure === undefined ? { sentence: 'nothing was measured', details: [] } : failureText(failure);
    return [{ ...none, from: pair[0], to: pair[1], error: [sentence, ...details].join('; ') }];
  }
  const waited = Math.max(0, ...lines.disturbances.map(waitedPart));
  return lines.pairs.map((way) => {
    const ends = { from: name(way.from), to: name(way.to), rail: way.fromNic };
    if (!isMeasured(way)) return { ...none, ...ends, error: way.error };
    const { latencyUs, gigabytes } = way;
    return { ...ends, rate: gigabytes.at(-1) ?? 0, latencyUs, lost: lostPart(way, lines), waited, error: null };
  });
}

function waitedPart({ waitedSeconds, seconds }: Disturbance): number {
  return seconds === 0 ? 0 : Math.min(1, waitedSeconds / seconds);
}

/**
 * As if every packet of TCP were full, of Ethernet's usual size. What was sent again for nothing, because a busy receiver answered late, is taken off
 * the ways of its sender. Null: the network does not count.
 */
function lostPart({ from, retransmits, sentBytes }: MeasuredNics, { pairs, disturbances }: PairLines): number | null {
  if (retransmits < 0 || sentBytes === 0) return null;
  const own = pairs.filter((way) => isMeasured(way) && way.from === from);
  const all = own.reduce((sum, way) => sum + (isMeasured(way) ? way.retransmits : 0), 0);
  // Ranks and hosts have equal numbers: one rank on each.
  const needless = disturbances.find(({ rank }) => rank === from)?.needlessPackets ?? 0;
  const needed = all === 0 ? 0 : (retransmits * Math.max(0, all - needless)) / all;
  return (needed * PACKET_BYTES) / sentBytes;
}

/** Of rank 0's stdout, and what each rank says of its disturbance; what else there is, nobody reads. */
class PairLines implements Reporter {
  readonly pairs: NetPair[] = [];
  readonly hosts: NetHost[] = [];
  readonly disturbances: Disturbance[] = [];
  readonly #measured = new Map<number, MeasuredLines<Line>>();
  ended: JobResult | null = null;

  event(_event: JobEvent): void {
    // The result says what has failed.
  }

  async output(chunk: OutputChunk): Promise<void> {
    let lines = this.#measured.get(chunk.rank);
    if (lines === undefined) this.#measured.set(chunk.rank, (lines = new MeasuredLines(parseLine)));
    for (const line of lines.take({ ...chunk, rank: 0 })?.lines ?? []) {
      if ('waitedSeconds' in line) this.disturbances.push(line);
      else if ('nics' in line) this.hosts.push(line);
      else if (!('network' in line)) this.pairs.push(line);
    }
  }

  async result(result: JobResult): Promise<void> {
    this.ended = result;
  }
}

type Line = Disturbance | NonNullable<ReturnType<typeof parseNetLine>>;

function parseLine(text: string): Line | null {
  return parseDisturbance(text) ?? parseNetLine(text);
}
