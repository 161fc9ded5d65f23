/** Who is said to slow a job down, window after window: once, again only when it is worse, and when it is over. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { HostRankPositions, RankArrivals, RankEdge } from '../../control/messages/hang.ts';
import type { Verdict } from '../../launcher/model/hang.ts';
import type { PositionReader } from '../../launcher/job/status.ts';
import { Stragglers } from '../../launcher/job/stragglers.ts';
import type { TimedAnswer } from '../../launcher/straggler/traces.ts';
import { endText, stragglerVerdict } from '../../launcher/straggler/verdict.ts';
import { readings } from '../rig/positions.ts';
import { turn } from '../rig/scripted-host.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }));
afterEach(() => void vi.useRealTimers());

const COMM = '00000000000c0ffe';
const OPERATIONS = 30;
const PERIOD_US = 100_000;

interface Window {
  /** Counts from 0; an equal one has no new operations. */
  readonly number: number;
  /** Microseconds by which rank 3 begins later than the others. */
  readonly lateUs?: number;
  /** Bytes that each link has carried, from the rank to the next, in a second. */
  readonly rates?: readonly number[];
}

/** Operations of a rank in a window: others compute 80 ms and wait for the late one. */
function arrivalsOf(rank: number, { number, lateUs = 0 }: Window): RankArrivals {
  const late = rank === 3 ? lateUs : 0;
  return {
    communicator: COMM,
    epoch: 0,
    size: 4,
    jobRank: rank,
    rank,
    numbers: Array.from({ length: OPERATIONS }, (_unused, index) => OPERATIONS * number + 1 + index),
    startUs: OPERATIONS * number * PERIOD_US + late,
    afterUs: Array(OPERATIONS - 1).fill(PERIOD_US),
    outsideUs: Array(OPERATIONS - 1).fill(80_000 + late),
  };
}

function edgesOf(rank: number, { number, rates = [] }: Window): RankEdge[] {
  return rates.flatMap((rate, from) => {
    const to = (from + 1) % rates.length;
    const common = {
      communicator: COMM,
      epoch: 0,
      channel: 0,
      nic: 'eth0',
      handed: 1,
      carried: 1,
      busyUs: 0,
      idleUs: 0,
    };
    const bytes = rate * (number + 1);
    const wire = { bytes, busyUs: 1_000_000 * (number + 1), retransmits: 0 };
    const ends: RankEdge[] = [
      { ...common, jobRank: from, rank: from, peer: to, sends: true, bytes, wire },
      { ...common, jobRank: to, rank: to, peer: from, sends: false, bytes, wire: null },
    ];
    return ends.filter((end) => end.rank === rank);
  });
}

/** Four ranks, one on each host, whose clocks are equal. */
function answers(window: Window): Map<string, TimedAnswer> {
  const [reading] = readings({ comms: [{ id: COMM, ranks: [0, 1, 2, 3] }], ranksPerHost: 1 });
  const clock = { id: 'one', atNs: 0, offsetNs: 0, errorNs: 0, drift: 0 };
  return new Map(
    Array.from(reading.answers, ([host, one], rank) => {
      const monotonicUs = 2_000_000 * (window.number + 1);
      const where: HostRankPositions = {
        ...one,
        monotonicUs,
        arrivals: [arrivalsOf(rank, window)],
        edges: edgesOf(rank, window),
      };
      return [host, { where, clock }];
    }),
  );
}

function watched(intervalMs = 1000) {
  const seen: string[] = [];
  const verdicts: Verdict[] = [];
  let reads = 0;
  let answer: ((window: Window) => void) | null = null;
  const positions: PositionReader = Object.assign(Object.create(null), {
    readArrivals(): Promise<Map<string, TimedAnswer>> {
      reads += 1;
      const { promise, resolve } = Promise.withResolvers<Map<string, TimedAnswer>>();
      answer = (window) => resolve(answers(window));
      return promise;
    },
  });
  const stragglers = new Stragglers({
    positions,
    intervalMs,
    found(verdict) {
      verdicts.push(verdict);
      seen.push(`${verdict.kind} ${verdict.blamed.map(({ ranks }) => ranks).join(' and ')}`);
    },
    ended: (message) => seen.push(message),
  });
  return {
    stragglers,
    seen,
    verdicts,
    reads: () => reads,
    look: async (window: Window): Promise<void> => {
      vi.advanceTimersByTime(intervalMs);
      answer?.(window);
      await turn();
    },
  };
}

describe('a rank that begins operations late', () => {
  it('a rank that is late in three windows is named once, and when it is no longer late for three', async () => {
    const { stragglers, seen, look } = watched();
    stragglers.begin();
    for (let number = 0; number < 5; number++) {
      await look({ number, lateUs: 20_000 });
      expect(seen).toEqual(number < 2 ? [] : ['straggler-compute 3']);
    }
    for (let number = 5; number < 9; number++) await look({ number });
    expect(seen.slice(1)).toEqual([`rank 3 on h3 no longer begins the operations of communicator ${COMM} last`]);
  });

  it('a rank that gets twice as late is named again', async () => {
    const { stragglers, seen, look } = watched();
    stragglers.begin();
    for (const [number, lateUs] of [20_000, 20_000, 20_000, 39_000, 40_000].entries()) await look({ number, lateUs });
    expect(seen).toEqual(['straggler-compute 3', 'straggler-compute 3']);
  });

  it('a window without new operations says nothing again', async () => {
    const { stragglers, seen, look } = watched();
    stragglers.begin();
    for (const number of [0, 1, 1, 1]) await look({ number, lateUs: 20_000 });
    expect(seen).toEqual([]);
    await look({ number: 2, lateUs: 20_000 });
    expect(seen).toHaveLength(1);
  });

  it('the verdict has the lateness as evidence', async () => {
    const { stragglers, verdicts, look } = watched();
    stragglers.begin();
    for (let number = 0; number < 3; number++) await look({ number, lateUs: 20_000 });
    expect(verdicts[0]).toMatchObject({
      message:
        `rank 3 on h3 begins operations last: in 30 of 30, by 20 ms of 100 ms between operations of communicator ${COMM}; ` +
        'without it each would come 25 % sooner',
      blamed: [{ ranks: '3', host: 'h3' }],
      evidence: [{ kind: 'lateness', host: 'h3', subject: 'rank 3 on h3', value: 20, unit: 'ms' }],
    });
  });
});

describe('the intervals at which answers are read', () => {
  it('nothing is read before the ranks run, without an interval, and after the end', async () => {
    const { stragglers, reads, look } = watched();
    await look({ number: 0 });
    expect(reads()).toBe(0);
    stragglers.begin();
    stragglers.begin();
    await look({ number: 0 });
    expect(reads()).toBe(1);
    stragglers.close();
    await look({ number: 1 });
    expect(reads()).toBe(1);
    const never = watched(0);
    never.stragglers.begin();
    expect(vi.getTimerCount()).toBe(0);
  });

  it('answers are not asked for while others are awaited, and count no more after the end', async () => {
    const { stragglers, seen, reads, look } = watched();
    stragglers.begin();
    vi.advanceTimersByTime(2500);
    expect(reads()).toBe(1);
    for (let number = 0; number < 2; number++) await look({ number, lateUs: 20_000 });
    vi.advanceTimersByTime(1000);
    stragglers.close();
    await look({ number: 2, lateUs: 20_000 });
    expect(seen).toEqual([]);
  });
});

describe('a link that is slow', () => {
  it('a link that is slow in three windows is named, and when it is no longer slow for three', async () => {
    const { stragglers, seen, look } = watched();
    stragglers.begin();
    const slow = [1e8, 1e8, 5e7, 1e8];
    for (let number = 0; number < 4; number++) await look({ number, rates: slow });
    expect(seen).toEqual(['slow-link 2 and 3']);
    const bytes = slow.map((rate) => rate * 4);
    for (let number = 4; number < 8; number++) {
      bytes.forEach((sum, link) => (bytes[link] = sum + 1e8));
      await look({ number, rates: bytes.map((sum) => sum / (number + 1)) });
    }
    expect(seen.slice(1)).toEqual(['the link from h2 (eth0) to h3 (eth0) is no longer slower than others']);
  });
});

describe('the sentence about a straggler', () => {
  const trace = { id: COMM, epoch: 0, size: 8, number: 60, operations: [], outsideMs: [], ranks: [], clockErrorMs: 0 };
  const lateness = {
    ranks: [5],
    hosts: ['b'],
    isHost: false,
    operations: 40,
    last: 38,
    latenessMs: 1.2345,
    periodMs: 12.345,
    gain: 0.111,
  };
  const busy = { kind: 'gpu-clock', host: 'b', subject: 'GPU 1', value: 1200, unit: 'MHz' } as const;
  const stolen = { kind: 'throttled', host: 'b', subject: 'rank 5', value: 3, unit: null } as const;

  it('times below 10 ms have two places behind the point, others one', () => {
    expect(stragglerVerdict(trace, lateness, []).message).toBe(
      `rank 5 on b begins operations last: in 38 of 40, by 1.23 ms of 12.3 ms between operations of communicator ${COMM}; without it each would come 11 % sooner`,
    );
    expect(stragglerVerdict(trace, { ...lateness, latenessMs: 10.04, periodMs: 9.999 }, []).message).toContain(
      'by 10 ms of 10 ms',
    );
  });

  it('what was measured on the host stands behind the name, three facts at most', () => {
    const { message, evidence } = stragglerVerdict(trace, lateness, [busy, stolen, busy, stolen]);
    expect(message).toContain('rank 5 on b (gpu-clock 1200 MHz, throttled 3, gpu-clock 1200 MHz) begins');
    expect(evidence).toHaveLength(5);
  });

  it('the ranks of a host are named with it, and its end', () => {
    const host = { ...lateness, ranks: [4, 5], isHost: true };
    expect(stragglerVerdict(trace, host, [])).toMatchObject({
      kind: 'straggler-host',
      message: expect.stringMatching(/^all ranks on b \(ranks 4-5\) begin operations last/u),
      blamed: [{ host: 'b' }],
    });
    expect(stragglerVerdict(trace, { ...host, hosts: ['b', 'c'] }, []).blamed).toMatchObject([{ host: null }]);
    expect(endText(host, COMM)).toBe(`ranks 4-5 on b no longer begin the operations of communicator ${COMM} last`);
  });
});
