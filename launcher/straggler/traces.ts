/** Traces of communicators out of what agents say about their ranks, by one clock. */
import type { HostRankPositions, RankArrivals } from '../../control/messages/hang.ts';
import { median } from './lateness.ts';
import type { ArrivalTrace } from './lateness.ts';

export interface CommunicatorTrace extends ArrivalTrace {
  readonly id: string;
  readonly epoch: number;
  readonly size: number;
  /** Number of the last collective. */
  readonly number: number;
}

/** How a host's clock relates to ours, in microseconds. */
export interface HostClock {
  /** Its time less ours. */
  readonly offsetUs: number;
  readonly errorUs: number;
}

/** What an agent has answered. */
export interface TimedAnswer {
  readonly where: HostRankPositions;
  readonly clock: HostClock;
}

interface Timed extends RankArrivals, HostClock {
  readonly host: string;
}

/** Of communicators whose ranks all have said when they began the same collectives. */
export function tracesOf(answers: ReadonlyMap<string, TimedAnswer>): CommunicatorTrace[] {
  const comms = new Map<string, Timed[]>();
  for (const [host, { where, clock }] of answers) {
    for (const one of where.arrivals) {
      const name = `${one.communicator}:${one.epoch}`;
      const known = comms.get(name) ?? [];
      if (known.length === 0) comms.set(name, known);
      known.push({ ...one, host, ...clock });
    }
  }
  return [...comms.values()].flatMap((ranks) => traceOf(ranks) ?? []);
}

function traceOf(ranks: readonly Timed[]): CommunicatorTrace | null {
  const [one] = ranks;
  if (one === undefined || new Set(ranks.map(({ rank }) => rank)).size < one.size) return null;
  const first = Math.max(...ranks.map((each) => each.first));
  const last = Math.min(...ranks.map((each) => each.first + each.afterUs.length));
  if (last < first) return null;
  const times = ranks.map((each) => timesOf(each, first, last));
  const outsideMs = ranks.map(({ first: own, outsideUs }) => median(outsideUs.slice(Math.max(0, first - own))) / 1000);
  const operations = Array.from({ length: last - first + 1 }, (_, index) =>
    times.map((own) => (own[index] ?? Number.NaN) / 1000),
  );
  const named = ranks.map(({ jobRank, host }) => ({ rank: jobRank, host }));
  // Each of two clocks may be wrong by so much.
  const clockErrorMs = (2 * Math.max(...ranks.map(({ errorUs }) => errorUs))) / 1000;
  return {
    id: one.communicator,
    epoch: one.epoch,
    size: one.size,
    number: last,
    operations,
    outsideMs,
    ranks: named,
    clockErrorMs,
  };
}

function timesOf({ first: own, startUs, afterUs, offsetUs }: Timed, first: number, last: number): number[] {
  const times: number[] = [];
  let time = startUs - offsetUs;
  for (let number = own; number <= last; number++) {
    if (number > own) time += afterUs[number - own - 1] ?? Number.NaN;
    if (number >= first) times.push(time);
  }
  return times;
}
