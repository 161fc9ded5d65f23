/** Traces of communicators out of what agents say about their ranks, by one clock. */
import type { HostRankPositions, RankArrivals } from '../../control/messages/hang.ts';
import type { KnownClock } from '../clocks/host-clocks.ts';
import { median } from './lateness.ts';
import type { ArrivalTrace } from './lateness.ts';

export interface CommunicatorTrace extends ArrivalTrace {
  readonly id: string;
  readonly epoch: number;
  readonly size: number;
  /** Number of the last collective. */
  readonly number: number;
}

/** What an agent has answered. */
export interface TimedAnswer {
  readonly where: HostRankPositions;
  readonly clock: KnownClock;
}

interface Timed extends RankArrivals {
  readonly host: string;
  readonly clock: KnownClock;
}

/** Of communicators whose ranks all have said when they began the same collectives. */
export function tracesOf(answers: ReadonlyMap<string, TimedAnswer>): CommunicatorTrace[] {
  const comms = new Map<string, Timed[]>();
  for (const [host, { where, clock }] of answers) {
    for (const one of where.arrivals) {
      const name = `${one.communicator}:${one.epoch}`;
      const known = comms.get(name) ?? [];
      if (known.length === 0) comms.set(name, known);
      known.push({ ...one, host, clock });
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
  return {
    id: one.communicator,
    epoch: one.epoch,
    size: one.size,
    number: last,
    operations,
    outsideMs,
    ranks: named,
    clockErrorMs: clockErrorMs(ranks, median(times.map(median))),
  };
}

/** Ranks that read the same clock cannot be wrong about each other. Of others, two may be wrong at once. */
function clockErrorMs(ranks: readonly Timed[], atUs: number): number {
  const clocks = [...new Map(ranks.map(({ clock }) => [clock.id, clock])).values()];
  if (clocks.length === 1) return 0;
  const errors = clocks.map(({ errorNs, atNs, drift }) => errorNs + drift * Math.abs(atNs - atUs * 1000));
  const [worst = 0, next = 0] = errors.toSorted((one, other) => other - one);
  return (worst + next) / 1e6;
}

function timesOf({ first: own, startUs, afterUs, clock }: Timed, first: number, last: number): number[] {
  const times: number[] = [];
  let time = startUs - clock.offsetNs / 1000;
  for (let number = own; number <= last; number++) {
    if (number > own) time += afterUs[number - own - 1] ?? Number.NaN;
    if (number >= first) times.push(time);
  }
  return times;
}
