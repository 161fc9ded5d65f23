/** Which ranks are said to slow a job down, on made-up traces. */
import { describe, expect, it } from 'vitest';
import { ClockBounds } from '../../launcher/clocks/bounds.ts';
import { binomialTail, describeLateness, latenessIn } from '../../launcher/straggler/lateness.ts';
import type { ArrivalTrace, Lateness } from '../../launcher/straggler/lateness.ts';
import { StragglerTracker } from '../../launcher/straggler/tracker.ts';
import { seededRandom } from '../rig/random.ts';

interface Made {
  readonly ranks: number;
  readonly operations?: number;
  readonly ranksPerHost?: number;
  readonly periodMs?: number;
  /** Part of the period by which a rank is slower, by rank. */
  readonly slow?: Readonly<Record<number, number>>;
  /** Part of the period by which every rank's time varies. */
  readonly jitter?: number;
  readonly clockErrorMs?: number;
  /** Part of its time that a rank does not wait for others before it comes, by rank. */
  readonly waits?: Readonly<Record<number, number>>;
}

/** All begin to compute when the last one has come. */
function trace(seed: number, made: Made): ArrivalTrace {
  const {
    ranks,
    operations = 60,
    ranksPerHost = ranks,
    periodMs = 100,
    slow = {},
    jitter = 0.01,
    clockErrorMs = 0,
    waits = {},
  } = made;
  const random = seededRandom(seed);
  let start = 0;
  const all = Array.from({ length: operations }, () => {
    const arrivals = Array.from({ length: ranks }, (_, rank) => {
      const noise = ((random(2_000_001) - 1_000_000) / 1_000_000) * jitter;
      return start + periodMs * (1 + (slow[rank] ?? 0) + noise);
    });
    start = Math.max(...arrivals);
    return arrivals;
  });
  const outsideMs = Array.from({ length: ranks }, (_, rank) => periodMs * (1 + (slow[rank] ?? 0)) * (waits[rank] ?? 1));
  const hosts = Array.from({ length: ranks }, (_, rank) => ({ rank, host: `h${Math.floor(rank / ranksPerHost)}` }));
  return { operations: all, outsideMs, ranks: hosts, clockErrorMs };
}

/** Ranks that are found where four hosts' clocks are known by readings that take so long at least. */
function foundByClocks(seed: number, quickestMs: number, slow: Readonly<Record<number, number>>): readonly number[] {
  const random = seededRandom(seed);
  const part = (): number => random(1_000_001) / 1_000_000;
  const errors = [0, 1, 2, 3].map(() => {
    const bounds = new ClockBounds({ askedNs: 0, itsNs: 10e9, answeredNs: 20e9 });
    for (let trip = 0; trip < 16; trip++) {
      // The way back takes no time, which is the worst for an estimate in the middle.
      const [askedNs, wayNs] = [20e9 + trip * 1e8, quickestMs * 1e6 * (1 + part())];
      bounds.add({ askedNs, itsNs: askedNs + wayNs, answeredNs: askedNs + wayNs });
    }
    return bounds.at(22e9);
  });
  const [worst = 0, next = 0] = errors.map(({ errorNs }) => errorNs).toSorted((one, other) => other - one);
  const made = trace(seed, { ranks: 8, ranksPerHost: 2, slow, jitter: 0.003, periodMs: 60 });
  const wrongMs = errors.map(({ offsetNs }) => offsetNs / 1e6);
  // Two hosts are wrong to one side, two to the other.
  const operations = made.operations.map((arrivals) =>
    arrivals.map((ms, rank) => ms + (rank % 4 < 2 ? 1 : -1) * (wrongMs[Math.floor(rank / 2)] ?? 0)),
  );
  return latenessIn({ ...made, operations, clockErrorMs: (worst + next) / 1e6 })?.ranks ?? [];
}

describe('lateness', () => {
  it.each([0.05, 0.1, 0.3, 1])('a rank that computes longer by a part of %d is found', (part) => {
    for (let seed = 1; seed <= 50; seed++)
      expect(latenessIn(trace(seed, { ranks: 8, slow: { 5: part }, jitter: 0.004 }))).toMatchObject({
        ranks: [5],
        isHost: false,
      });
  });

  it('no rank is found where times vary at random', () => {
    for (let seed = 1; seed <= 500; seed++)
      expect(latenessIn(trace(seed, { ranks: 2 + (seed % 15), jitter: 0.02 + (seed % 10) / 20 }))).toBeNull();
  });

  it('no rank is found that is slower by less than is worth a word', () => {
    expect(latenessIn(trace(1, { ranks: 8, slow: { 5: 0.02 } }))).toBeNull();
    expect(latenessIn(trace(1, { ranks: 8, slow: { 5: 0.3 }, periodMs: 2 }))).toBeNull();
  });

  it('two equally slow ranks are not blamed singly, because nothing is gained without one of them', () => {
    expect(latenessIn(trace(3, { ranks: 8, slow: { 2: 0.2, 6: 0.2 } }))).toBeNull();
  });

  it('a host is found where all of its ranks are late', () => {
    const slow = { 2: 0.2, 3: 0.2 };
    expect(latenessIn(trace(4, { ranks: 8, ranksPerHost: 2, slow }))).toMatchObject({
      isHost: true,
      hosts: ['h1'],
      ranks: [2, 3],
    });
  });

  it('lateness within the error of the clocks is nobody’s', () => {
    const made = { ranks: 4, ranksPerHost: 1, slow: { 1: 0.1 } };
    expect(latenessIn(trace(5, { ...made, clockErrorMs: 1 }))).toMatchObject({ ranks: [1] });
    expect(latenessIn(trace(5, { ...made, clockErrorMs: 5 }))).toBeNull();
  });

  it('equal ranks of hosts with skewed clocks are never blamed, and one that is 5 % slower is, where answers are quick', () => {
    for (let seed = 1; seed <= 100; seed++) {
      for (const quickestMs of [0.1, 0.5, 2, 10, 50]) expect(foundByClocks(seed, quickestMs, {})).toEqual([]);
      expect(foundByClocks(seed, 0.2, { 5: 0.05 })).toEqual([5]);
    }
  });

  it('the last stage of a pipeline, which waits for the others before it comes, is not late', () => {
    const made = { ranks: 4, slow: { 1: 0.2, 2: 0.4, 3: 0.6 } };
    expect(latenessIn(trace(6, made))).toMatchObject({ ranks: [3] });
    expect(latenessIn(trace(6, { ...made, waits: { 1: 0.8, 2: 0.7, 3: 0.6 } }))).toBeNull();
  });

  it('fewer than 20 operations say nothing', () => {
    expect(latenessIn(trace(6, { ranks: 4, slow: { 3: 0.5 }, operations: 19 }))).toBeNull();
    expect(latenessIn(trace(6, { ranks: 4, slow: { 3: 0.5 }, operations: 24 }))).not.toBeNull();
  });

  it('the tail of the binomial distribution is exact', () => {
    expect(binomialTail(20, 20, 0.5)).toBeCloseTo(2 ** -20, 12);
    expect(binomialTail(10, 0, 0.3)).toBeCloseTo(1, 9);
    expect(binomialTail(3, 2, 0.25)).toBeCloseTo(3 * 0.25 ** 2 * 0.75 + 0.25 ** 3, 12);
  });
});

const late = (latenessMs: number, rank = 3): Lateness => ({
  ranks: [rank],
  hosts: ['h1'],
  isHost: false,
  operations: 60,
  last: 60,
  latenessMs,
  periodMs: 100,
  gain: 0.1,
});
const said = (windows: readonly (Lateness | null)[]) => {
  const tracker = new StragglerTracker(describeLateness);
  return windows.map((window) => tracker.add(window)?.news ?? null);
};

describe('the tracker of stragglers', () => {
  it('a straggler is named after three windows in a row, and once', () => {
    expect(said([late(10), late(11), late(10), late(12), late(10)])).toEqual([null, null, 'begins', null, null]);
    expect(said([late(10), null, late(10), late(10), late(10, 4), late(10)])).toEqual([
      null,
      null,
      null,
      null,
      null,
      null,
    ]);
  });

  it('it is named again when it is twice as late, and its end is reported after three windows', () => {
    const windows = [late(10), late(10), late(10), late(21), late(25), null, null, null, null];
    expect(said(windows)).toEqual([null, null, 'begins', 'doubles', null, null, null, 'ends', null]);
  });
});
