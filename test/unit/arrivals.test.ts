/** Traces of when ranks begin operations, from what the agents of several hosts say. */
import { expect, it } from 'vitest';
import type { HostRankPositions, RankArrivals } from '../../control/messages/hang.ts';
import { tracesOf } from '../../launcher/straggler/traces.ts';
import type { KnownClock } from '../../launcher/clocks/host-clocks.ts';
import type { TimedAnswer } from '../../launcher/straggler/traces.ts';

const communicator = 'c0ffee'.padStart(16, '0');

function arrivals(rank: number, first: number, startUs: number, afterUs: readonly number[]): RankArrivals {
  const numbers = [first, ...afterUs.map((_, index) => first + index + 1)];
  const outsideUs = afterUs.map(() => 500);
  return { communicator, epoch: 0, size: 2, jobRank: rank, rank, numbers, startUs, afterUs, outsideUs };
}

/** `aheadUs`: of its clock before ours. */
function answer(own: readonly RankArrivals[], aheadUs: number, known: Partial<KnownClock> = {}): TimedAnswer {
  const where: HostRankPositions = {
    reading: 1,
    atMs: 0,
    monotonicUs: 1_000_000 + aheadUs,
    communicators: [],
    processes: [],
    stolenMs: null,
    health: null,
    arrivals: own,
    edges: [],
    omitted: 0,
  };
  const clock = { id: `${aheadUs}`, offsetNs: aheadUs * 1000, errorNs: 100_000, atNs: 11_000_000, drift: 0, ...known };
  return { where, clock };
}

it('times of hosts whose clocks differ become times of one clock, with its error', () => {
  const answers = new Map([
    ['h0', answer([arrivals(0, 5, 10_000, [1000, 1000])], 0)],
    ['h1', answer([arrivals(1, 6, 711_250, [1000, 1000])], 700_000)],
  ]);
  expect(tracesOf(answers)).toEqual([
    {
      id: communicator,
      epoch: 0,
      size: 2,
      number: 7,
      operations: [
        [11, 11.25],
        [12, 12.25],
      ],
      outsideMs: [0.5, 0.5],
      ranks: [
        { rank: 0, host: 'h0' },
        { rank: 1, host: 'h1' },
      ],
      clockErrorMs: 0.2,
    },
  ]);
});

it('a communicator of which a rank is missing, or whose ranks are far apart, has no trace', () => {
  expect(tracesOf(new Map([['h0', answer([arrivals(0, 5, 0, [1])], 0)]]))).toEqual([]);
  const apart = [arrivals(0, 5, 0, [1]), arrivals(1, 50, 0, [1])];
  expect(tracesOf(new Map([['h0', answer(apart, 0)]]))).toEqual([]);
});

const errorOf = (known: Partial<KnownClock>) =>
  tracesOf(
    new Map([
      ['h0', answer([arrivals(0, 5, 10_000, [1000, 1000])], 0, known)],
      ['h1', answer([arrivals(1, 5, 10_000, [1000, 1000])], 5, { errorNs: 300_000, drift: 100e-6, ...known })],
    ]),
  )[0]?.clockErrorMs;

it('clocks of two hosts get more wrong as time passes, and one clock that both hosts read does not', () => {
  expect(errorOf({ id: 'one' })).toBe(0);
  expect(errorOf({ atNs: 11_000_000 })).toBeCloseTo(0.4, 5);
  expect(errorOf({ atNs: 1_011_000_000 })).toBeCloseTo(0.5, 5);
});
