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
  const times = ranks.map((each) => timesOf(each));
  const numbers = one.numbers.filter((number) => times.every((own) => own.has(number)));
  const [first] = numbers;
  const last = numbers.at(-1);
  if (first === undefined || last === undefined) return null;
  const outsideMs = ranks.map(({ numbers: own, outsideUs }) => {
    return median(outsideUs.slice(Math.max(0, own.indexOf(first)))) / 1000;
  });
  const operations = numbers.map((number) => times.map((own) => (own.get(number) ?? Number.NaN) / 1000));
  const named = ranks.map(({ jobRank, host }) => ({ rank: jobRank, host }));
  return {
    id: one.communicator,
    epoch: one.epoch,
    size: one.size,
    number: last,
    operations,
    outsideMs,
    ranks: named,
    clockErrorMs: clockErrorMs(ranks, median(operations.map(median)) * 1000),
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

/** By the number of the operation. */
function timesOf({ numbers, startUs, afterUs, clock }: Timed): ReadonlyMap<number, number> {
  let time = startUs - clock.offsetNs / 1000;
  return new Map(
    numbers.map((number, index) => {
      if (index > 0) time += afterUs[index - 1] ?? Number.NaN;
      return [number, time];
    }),
  );
}
