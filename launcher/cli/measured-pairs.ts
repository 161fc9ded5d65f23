/** The network between hosts, each pair measured by a job of two ranks, as `ncclrun perf net` does. */
import { firstRound, secondRound, type HostPair } from '../doctor/rounds.ts';
import { betterWays, doubtfulPairs, type MeasuredWay } from '../doctor/pairs.ts';
import { perfPath } from '../local/host.ts';
import type { JobEvent, OutputChunk } from '../model/event.ts';
import type { JobResult, Reporter } from '../model/types.ts';
import { Limiter } from '../remote/shell/limiter.ts';
import { failureText } from '../report/failure-text.ts';
import { MeasuredLines } from '../report/measured-lines.ts';
import {
  isMeasured,
  parseNetLine,
  type MeasuredPair as MeasuredNics,
  type NetHost,
  type NetPair,
} from '../report/net-rows.ts';
import { runReported } from './launch.ts';
import type { JobOptionName } from './options.ts';
import { requestOfHosts } from './readings-of-hosts.ts';
import type { Settings } from './settings.ts';

/** Bytes of a message: enough to fill a link. */
const BYTES = 2 ** 20;
const PACKET_BYTES = 1448;
/** Jobs at the same time. */
const AT_ONCE = 64;

/** Both ways of every pair that was measured, and of those that failed. */
export async function measuredWays(
  settings: Settings<JobOptionName>,
  hosts: readonly string[],
): Promise<MeasuredWay[]> {
  const first = await measuredRound(settings, firstRound(hosts));
  const second = await measuredRound(settings, secondRound(hosts, first.map(rateOf)));
  const ways = [...first, ...second].flatMap((pair) => pair.ways);
  const again = await measuredRound(settings, doubtfulPairs(ways));
  return betterWays(
    ways,
    again.flatMap((pair) => pair.ways),
  );
}

interface MeasuredPair {
  readonly pair: HostPair;
  readonly ways: readonly MeasuredWay[];
}

function rateOf({ pair, ways }: MeasuredPair) {
  const rates = ways.map(({ rate }) => rate);
  return { pair, rate: rates.some((rate) => rate === null) ? null : Math.min(...rates.map((rate) => rate ?? 0)) };
}

async function measuredRound(settings: Settings<JobOptionName>, pairs: readonly HostPair[]): Promise<MeasuredPair[]> {
  const limiter = new Limiter(AT_ONCE);
  const measured = async (pair: HostPair) => ({ pair, ways: await waysOf(settings, pair) });
  return await Promise.all(pairs.map((pair) => limiter.within(() => measured(pair))));
}

async function waysOf(settings: Settings<JobOptionName>, pair: HostPair): Promise<MeasuredWay[]> {
  const lines = new PairLines();
  await runReported(requestOfHosts(settings, pair, [perfPath, 'net', String(BYTES), 'rail']), lines);
  const name = (index: number): string => lines.hosts.find(({ host }) => host === index)?.name ?? pair[index] ?? '';
  const [failure] = lines.ended?.failures ?? [];
  if (failure !== undefined || lines.pairs.length === 0) {
    const { sentence, details } =
      failure === undefined ? { sentence: 'nothing was measured', details: [] } : failureText(failure);
    const error = [sentence, ...details].join('; ');
    return [{ from: pair[0], to: pair[1], rate: null, latencyUs: null, lost: null, error }];
  }
  return lines.pairs.map((way) => ({
    from: name(way.from),
    to: name(way.to),
    ...(isMeasured(way)
      ? { rate: way.gigabytes.at(-1) ?? 0, latencyUs: way.latencyUs, lost: lostPart(way), error: null }
      : { rate: null, latencyUs: null, lost: null, error: way.error }),
  }));
}

/** As if every packet of TCP were full, of Ethernet's usual size. Null: the network does not count. */
function lostPart({ retransmits, sentBytes }: MeasuredNics): number | null {
  return retransmits < 0 || sentBytes === 0 ? null : (retransmits * PACKET_BYTES) / sentBytes;
}

/** Of rank 0's stdout; what else there is, nobody reads. */
class PairLines implements Reporter {
  readonly pairs: NetPair[] = [];
  readonly hosts: NetHost[] = [];
  readonly #measured = new MeasuredLines(parseNetLine);
  ended: JobResult | null = null;

  event(_event: JobEvent): void {
    // The result says what has failed.
  }

  async output(chunk: OutputChunk): Promise<void> {
    for (const line of this.#measured.take(chunk)?.lines ?? []) {
      if ('host' in line) this.hosts.push(line);
      else if (!('network' in line)) this.pairs.push(line);
    }
  }

  async result(result: JobResult): Promise<void> {
    this.ended = result;
  }
}
