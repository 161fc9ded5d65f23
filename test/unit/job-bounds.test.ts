/** Small parts of a job: limits for hosts, last words of ranks, phases, restarts, and who reads stdin. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { jobRequest } from '../../launcher/cli/job-request.ts';
import { type JobOptionName, runCommandLine } from '../../launcher/cli/options.ts';
import { mergeSettings, Settings } from '../../launcher/cli/settings.ts';
import { EndBounds } from '../../launcher/job/end-bounds.ts';
import { planMisfit } from '../../launcher/job/given-plan.ts';
import { HostBounds } from '../../launcher/job/host-bounds.ts';
import { LastWords } from '../../launcher/job/last-words.ts';
import { PhaseClock } from '../../launcher/job/phase-clock.ts';
import { Restarts } from '../../launcher/job/restarts.ts';
import { noSuchReader, stdinReader } from '../../launcher/job/stdin-readers.ts';
import type { Failure } from '../../launcher/model/failure.ts';
import type { RankMap, StdinReaders } from '../../launcher/model/types.ts';
import { samplePlan } from '../rig/plans.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe('a host whose ranks are to be killed', () => {
  test('it is overdue after 30 ticks without output, and only once', () => {
    const overdue: number[] = [];
    const bounds = new EndBounds({ isHeldUp: () => false, overdue: (seconds) => void overdue.push(seconds) });
    vi.advanceTimersByTime(29_999);
    expect(overdue).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(overdue).toEqual([30]);
    vi.advanceTimersByTime(60_000);
    expect(overdue).toEqual([30]);
    bounds.close();
  });

  test('output and a slow reporter give it time, and nothing is counted after the end', () => {
    let held = true;
    const overdue: number[] = [];
    const bounds = new EndBounds({ isHeldUp: () => held, overdue: (seconds) => void overdue.push(seconds) });
    vi.advanceTimersByTime(100_000);
    held = false;
    vi.advanceTimersByTime(29_000);
    bounds.output(1);
    vi.advanceTimersByTime(29_000);
    expect(overdue).toEqual([]);
    vi.advanceTimersByTime(1000);
    expect(overdue).toEqual([30]);
    const closed = new EndBounds({ isHeldUp: () => false, overdue: (seconds) => void overdue.push(seconds) });
    closed.close();
    vi.advanceTimersByTime(40_000);
    expect(overdue).toEqual([30]);
    bounds.close();
  });

  test('it may send 256 MB in a million messages, and no more', () => {
    const options = { isHeldUp: () => false, overdue: () => undefined };
    const bytes = new EndBounds(options);
    bytes.output(200e6);
    bytes.output(56e6);
    expect(() => bytes.output(1)).toThrow(/ of output in 3 messages after its ranks were to be killed$/u);
    const messages = new EndBounds(options);
    for (let message = 0; message < 1_000_000; message++) messages.output(0);
    expect(() => messages.output(0)).toThrow('0 bytes of output in 1000001 messages after');
    for (const bounds of [bytes, messages]) bounds.close();
  });
});

describe('what a host may say', () => {
  test('it says hello once, and is suspended as often as it was asked', () => {
    const bounds = new HostBounds();
    bounds.hello();
    expect(() => bounds.hello()).toThrow('a second hello');
    expect(() => bounds.suspended()).toThrow('its ranks are suspended, which nobody asked for');
    bounds.suspensionAsked();
    bounds.suspensionAsked();
    bounds.suspended();
    bounds.suspended();
    expect(() => bounds.suspended()).toThrow('nobody asked for');
  });

  test('100 heartbeats and 2000 reports may come at once, and then 10 and 20 in a second', () => {
    const bounds = new HostBounds();
    for (let heartbeat = 0; heartbeat < 100; heartbeat++) bounds.heartbeat();
    expect(() => bounds.heartbeat()).toThrow('101 heartbeats within 0.0 s, where 100 are the most at once');
    for (let report = 0; report < 2000; report++) bounds.report();
    expect(() => bounds.report()).toThrow('2001 reports within 0.0 s, where 2000 are the most at once');
    vi.advanceTimersByTime(1000);
    for (let heartbeat = 101; heartbeat < 110; heartbeat++) bounds.heartbeat();
    expect(() => bounds.heartbeat()).toThrow('111 heartbeats');
    for (let report = 2001; report < 2020; report++) bounds.report();
    expect(() => bounds.report()).toThrow('2021 reports');
  });
});

const after = (...pieces: readonly string[]): readonly string[] => {
  const words = new LastWords();
  for (const piece of pieces) words.add(1, Buffer.from(piece));
  return words.of(1);
};

const numbered = (count: number) => Array.from({ length: count }, (_, line) => `line ${line}`);

describe('the last words of a rank', () => {
  test.each<[string, string[], string[]]>([
    ['nothing', [], []],
    ['empty lines', ['\n', ' \n'], []],
    ['pieces of a line', ['a', 'b\nc', 'd\n\n'], ['ab', 'cd']],
    ['ten lines', [numbered(10).join('\n')], numbered(10)],
    ['eleven lines', [numbered(11).join('\n')], numbered(11).slice(1)],
    ['colours and control characters', ['\u001B[31mred\u001B[0m\u0007\ttab\u001Bc\n'], ['red\ttab']],
    ['a progress bar', ['10 %\r20 %\r30 %\r\r\n'], ['30 %']],
    ['400 characters', ['x'.repeat(400)], ['x'.repeat(400)]],
    ['401 characters', ['x'.repeat(401)], [`${'x'.repeat(400)}…`]],
    ['a line of 4096 bytes', ['x'.repeat(4096)], [`${'x'.repeat(400)}…`]],
    ['4095 bytes', [`ab\n${'x'.repeat(4092)}`], ['ab', `${'x'.repeat(400)}…`]],
    ['more than 4096 bytes', ['lost', `ab\n${'x'.repeat(4092)}`, 'y'], [`${'x'.repeat(400)}…`]],
    ['a piece beyond 4096 bytes', [`lost\nhalf${'x'.repeat(4090)}\nend`], ['end']],
  ])('the last words after %s are the last ten lines as a terminal shows them', (_what, pieces, lines) => {
    expect(after(...pieces)).toEqual(lines);
  });

  test('the bytes are copied, and other ranks have words of their own', () => {
    const words = new LastWords();
    const bytes = Buffer.from('mine\n');
    words.add(0, bytes);
    bytes.fill(0x78);
    expect([words.of(0), words.of(1)]).toEqual([['mine'], []]);
  });
});

test('the phases of a job add up to hundredths of a millisecond', () => {
  const clock = new PhaseClock();
  expect(clock.phase).toBe('allocate');
  vi.advanceTimersByTime(5);
  clock.enter('connect');
  vi.advanceTimersByTime(7);
  clock.enter('run');
  vi.advanceTimersByTime(11);
  clock.enter('connect');
  vi.advanceTimersByTime(13);
  expect(clock.phase).toBe('connect');
  expect(clock.read()).toEqual({ allocate: 5, connect: 20, hello: 0, spawn: 0, run: 11, teardown: 0 });
});

describe('restarts', () => {
  const hang: Failure = { type: 'host-lost', host: 'h', cause: 'silent', silentMs: 1, detail: '' };
  const usage: Failure = { type: 'timeout', seconds: 1 };

  test('a failure of a rank or host is mended as often as the limit allows', () => {
    const restarts = new Restarts({ maxRestarts: 2 });
    expect([restarts.done, restarts.left]).toEqual([0, 2]);
    expect(restarts.another(usage, false)).toBe(false);
    expect(restarts.another(hang, false)).toBe(true);
    expect([restarts.done, restarts.left]).toEqual([1, 1]);
    expect(restarts.another(usage, true)).toBe(true);
    expect(restarts.another(hang, true)).toBe(false);
    expect([restarts.done, restarts.left]).toEqual([2, 0]);
  });

  test('nothing is mended after the job was given up, and the reason stands for what would have been', () => {
    const restarts = new Restarts({ maxRestarts: 1 });
    expect(restarts.insteadOf(hang)).toBeNull();
    restarts.giveUp(usage);
    expect([restarts.left, restarts.another(hang, true)]).toEqual([0, false]);
    expect(restarts.insteadOf(hang)).toBe(usage);
    expect(restarts.insteadOf(usage)).toBeNull();
    const none = new Restarts({ maxRestarts: 0 });
    none.giveUp(usage);
    expect(none.insteadOf(hang)).toBeNull();
  });
});

const mapOf = (count: number): RankMap => ({
  hosts: [],
  ranks: Array.from({ length: count }, (_, rank) => {
    return { rank, host: 0, program: 0, localRank: rank, localSize: count, numa: null, gpu: null };
  }),
});

const readers = (...ranges: readonly (readonly [number, number])[]): StdinReaders => {
  return { type: 'ranks', ranges: ranges.map(([first, last]) => ({ first, last })) };
};

describe('requests that the number of ranks decides', () => {
  const request = jobRequest(new Settings<JobOptionName>(mergeSettings(runCommandLine.options, [])), ['p']);

  test.each<[StdinReaders, number | null, string | null]>([
    [readers([0, 0]), 1, null],
    [readers([0, 1], [3, 4]), 5, null],
    [readers([0, 1], [3, 5]), 5, '--stdin names rank 5, and there is none; ranks are 0 to 4; or write --stdin all'],
    [readers([1, 1]), 1, '--stdin names rank 1, and there is none; ranks are 0 alone; or write --stdin all'],
    [readers([9, 9]), null, null],
    [{ type: 'all' }, 1, null],
    [{ type: 'none' }, 1, null],
  ])('the readers %j fit a job of %j ranks unless one does not exist', (stdin, ranks, refusal) => {
    const failure = noSuchReader({ ...request, stdin }, ranks === null ? null : mapOf(ranks));
    expect(failure?.type === 'usage' ? `${failure.message}; ${failure.remedy}` : failure).toBe(refusal);
  });

  test.each<[StdinReaders, boolean, number[]]>([
    [readers([1, 2], [4, 4]), true, [1, 2, 4]],
    [readers([1, 2]), false, []],
    [{ type: 'all' }, true, [0, 1, 2, 3, 4, 5]],
    [{ type: 'all' }, false, []],
    [{ type: 'none' }, true, []],
  ])('the readers %j, where there is a stdin (%s), are ranks %j', (stdin, exists, ranks) => {
    const reads = stdinReader({ ...request, stdin }, exists);
    expect([0, 1, 2, 3, 4, 5].filter((rank) => reads(rank))).toEqual(ranks);
  });

  test('a given plan fits as many ranks as it was made for', () => {
    const given = { source: 'p.json', plan: samplePlan() };
    const count = given.plan.peers.length;
    for (const [plan, map] of [
      [null, mapOf(1)],
      [given, null],
      [given, mapOf(count)],
    ] as const)
      expect(planMisfit(plan, map)).toBeNull();
    expect(planMisfit(given, mapOf(count + 1))).toEqual({
      type: 'usage',
      message: `p.json: is for ${count} ranks, this job has ${count + 1}`,
      remedy: `start ${count} ranks, or leave --plan out`,
    });
  });
});
