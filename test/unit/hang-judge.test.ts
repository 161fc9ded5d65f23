/** When the launcher asks the agents where their ranks are, and when it reports a hang. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Frame } from '../../control/messages/frame.ts';
import type { HostRankPositions, RankPositionsQuery } from '../../control/messages/hang.ts';
import { parseRankPositionsQuery } from '../../control/link/validate.ts';
import { HangJudge } from '../../launcher/job/hang.ts';
import type { Hang } from '../../launcher/model/hang.ts';
import { ended, readings } from '../rig/positions.ts';
import type { PlantedJob } from '../rig/positions.ts';

/** Rank 3 is late; ranks 0 and 1 are on h0, 2 and 3 on h1. */
const late: PlantedJob = { comms: [{ id: '00000000000000aa', ranks: [0, 1, 2, 3], changes: { 3: ended(16) } }] };
const at = (operation: number): PlantedJob => {
  const changes = { 3: ended(operation - 1) };
  return { comms: [{ id: '00000000000000aa', ranks: [0, 1, 2, 3], all: { operation }, changes }] };
};

/** Rank 3 does not come to the replay of a graph in which the others have waited for so long. */
const forMs = (waitedMs: number): PlantedJob => ({
  comms: [
    { id: '00000000000000aa', ranks: [0, 1, 2, 3], all: { waitedMs, byKernel: true }, changes: { 3: ended(17) } },
  ],
});

function judge(hosts: readonly string[] = ['h0', 'h1']) {
  const found: Hang[] = [];
  const asked: [host: string, query: RankPositionsQuery][] = [];
  const one = new HangJudge({
    hosts: () => hosts,
    send: (host: string, { payload }: Frame) => void asked.push([host, parseRankPositionsQuery(payload)]),
    found: (hang: Hang) => void found.push(hang),
  });
  /** The host answers what it was asked last. */
  const answer = (host: string, job: PlantedJob = late): void => {
    const reading = asked.at(-1)?.[1].reading ?? 0;
    const where = readings(job)[1].answers.get(host);
    const nothing: HostRankPositions = {
      reading,
      atMs: 0,
      monotonicUs: 0,
      communicators: [],
      processes: [],
      stolenMs: null,
      health: null,
      arrivals: [],
      edges: [],
      omitted: 0,
    };
    one.answered(host, { ...(where ?? nothing), reading });
  };
  /** Both readings, with an answer of all hosts. */
  const inquire = (job: PlantedJob): void => {
    one.stalled();
    for (const host of hosts) answer(host, job);
    vi.advanceTimersByTime(250);
    for (const host of hosts) answer(host, job);
  };
  return { judge: one, found, asked, answer, inquire };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe('a hang', () => {
  it('the launcher asks and judges nothing once it ends the ranks', () => {
    const { judge: one, found, asked, answer } = judge();
    one.stalled();
    for (const host of ['h0', 'h1']) answer(host);
    vi.advanceTimersByTime(250);
    answer('h0');
    const queries = asked.length;
    one.close();
    answer('h1');
    one.stalled();
    vi.advanceTimersByTime(5000);
    expect([found, asked.length]).toEqual([[], queries]);
  });

  it('the launcher asks all hosts, and again 250 ms later', () => {
    const { judge: one, found, asked, answer } = judge();
    one.stalled();
    expect(asked.map(([host]) => host)).toEqual(['h0', 'h1']);
    answer('h0');
    answer('h1');
    vi.advanceTimersByTime(249);
    expect(asked).toHaveLength(2);
    vi.advanceTimersByTime(1);
    expect(asked.slice(2).map(([host]) => host)).toEqual(['h0', 'h1']);
    answer('h0');
    expect(found).toEqual([]);
    answer('h1');
    expect(found).toHaveLength(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('the launcher asks what the ranks sleep in that the first reading blames', () => {
    const { asked, inquire } = judge();
    inquire(late);
    expect(asked.map(([, { inspect }]) => inspect)).toEqual([[], [], [3], [3]]);
  });

  it('the launcher waits a second for a silent host, and names it', () => {
    const { judge: one, found, answer } = judge();
    const rest: PlantedJob = { comms: [{ id: '00000000000000aa', ranks: [0, 1], size: 4 }] };
    one.stalled();
    answer('h0', rest);
    vi.advanceTimersByTime(1000 + 250);
    answer('h0', rest);
    vi.advanceTimersByTime(999);
    expect(found).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(found).toMatchObject([
      { late: ['h1 does not say where its ranks are'], verdict: { kind: 'host-silent', confidence: 'likely' } },
    ]);
  });

  it('the launcher does not count an answer to an earlier query', () => {
    const { judge: one, asked, answer } = judge(['h0']);
    one.stalled();
    const where = readings(late)[0].answers.get('h0');
    if (where !== undefined) one.answered('h0', { ...where, reading: 9 });
    vi.advanceTimersByTime(250);
    expect(asked).toHaveLength(1);
    answer('h0');
    vi.advanceTimersByTime(250);
    expect(asked).toHaveLength(2);
  });

  it('the launcher reports each operation of a communicator once', () => {
    const { found, inquire } = judge();
    for (const operation of [17, 17, 16, 18]) inquire(at(operation));
    expect(found.map(({ operation }) => operation)).toEqual([17, 18]);
  });

  it('the launcher reports an operation again that a graph repeats, if ranks began to wait in it since', () => {
    const { found, inquire } = judge();
    inquire(forMs(5000));
    vi.advanceTimersByTime(10_000);
    inquire(forMs(15_000));
    expect(found).toHaveLength(1);
    vi.advanceTimersByTime(10_000);
    inquire(forMs(2000));
    expect(found).toHaveLength(2);
  });

  it('the launcher asks once while many hosts report stalls', () => {
    const { judge: one, asked } = judge();
    one.stalled();
    one.stalled();
    expect(asked).toHaveLength(2);
  });

  it('the launcher asks again for ranks that stall after the second query', () => {
    const { judge: one, asked, answer } = judge();
    one.stalled();
    for (const host of ['h0', 'h1']) answer(host);
    vi.advanceTimersByTime(250);
    one.stalled();
    for (const host of ['h0', 'h1']) answer(host);
    expect(asked).toHaveLength(6);
  });

  it('the launcher asks again for a rank that hangs in an operation which it had not begun at the first reading', () => {
    const { judge: one, found, asked, answer } = judge(['h0']);
    one.stalled();
    answer('h0', at(16));
    vi.advanceTimersByTime(250);
    answer('h0', at(17));
    expect({ found, queries: asked.length }).toEqual({ found: [], queries: 3 });
  });

  it('the launcher reports no hang after the job has ended', () => {
    const { judge: one, found } = judge();
    one.stalled();
    one.close();
    vi.advanceTimersByTime(5000);
    expect(found).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });
});
