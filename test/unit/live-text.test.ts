/** The live line in each phase of a job, at each width, and what it counts. */
import { describe, expect, test } from 'vitest';
import type { JobEvent } from '../../launcher/model/event.ts';
import type { Failure } from '../../launcher/model/failure.ts';
import { LiveText } from '../../launcher/report/live-text.ts';

const timeout: Failure = { type: 'timeout', seconds: 1 };
const started = (ranks: number): JobEvent => ({
  time: 0,
  type: 'job-started',
  jobId: 'j',
  ranks,
  hosts: [],
  programs: [],
});
const connecting = (host: string, time = 0): JobEvent => ({ time, type: 'host-connecting', host });
const up = (host: string): JobEvent => ({ time: 0, type: 'host-up', host, cores: 1, gpus: 0, pid: 1 });
const hostEnded = (host: string): JobEvent => ({ time: 0, type: 'host-ended', host });
const phase = (name: 'connect' | 'spawn' | 'run' | 'teardown', time = 0): JobEvent => ({
  time,
  type: 'phase',
  phase: name,
});
const began = (rank: number): JobEvent => ({ time: 0, type: 'rank-started', rank, host: 'a', pid: 1 });
const exited = (rank: number): JobEvent => ({
  time: 0,
  type: 'rank-exited',
  rank,
  host: 'a',
  exitCode: 0,
  signal: null,
});
const failed = (primary: boolean): JobEvent => ({ time: 0, type: 'failure', failure: timeout, primary });

function lineAfter(events: readonly JobEvent[], width = 80, now = 0): string {
  const text = new LiveText();
  for (const event of events) text.event(event);
  return text.line(width, now);
}

const hosts = [connecting('a'), connecting('b', 3000), connecting('c')];

describe('the live line', () => {
  test.each<[string, JobEvent[], string]>([
    ['before any host', [started(2)], ''],
    ['while hosts are tried', [connecting('a')], '0/1 host up; waiting for a (queued, 0 s)'],
    ['once all hosts are up', [connecting('a'), up('a')], '1/1 host up'],
    [
      'of a host that gets a copy',
      [connecting('a'), { time: 0, type: 'host-staging', host: 'a', bytes: 1 }],
      '0/1 host up; waiting for a (copying ncclrun, 0 s)',
    ],
    [
      'after a step of an unknown host',
      [connecting('a'), { time: 0, type: 'host-step', host: 'b', step: 'x' }],
      '0/1 host up; waiting for a (queued, 0 s)',
    ],
    [
      'after the end of a host that was not up',
      [connecting('a'), connecting('b'), hostEnded('a')],
      '1/2 hosts up; waiting for b (queued, 0 s)',
    ],
    ['while ranks start', [started(3), phase('spawn'), began(0)], '1/3 ranks started'],
    ['of a single rank that runs', [started(1), phase('spawn'), began(0), phase('run')], ''],
    ['of two ranks that run', [started(2), began(0), began(1), phase('run')], '2 ranks running, 0 s'],
    [
      'when one of two ranks has exited',
      [started(2), began(0), began(1), phase('run'), exited(1)],
      '1/2 ranks running (rank 0), 0 s',
    ],
    [
      'after a failure that decides',
      [started(2), began(0), began(1), phase('run'), failed(true)],
      'waiting for ranks 0-1 to end',
    ],
    [
      'after a failure that does not decide',
      [started(2), began(0), began(1), phase('run'), failed(false)],
      '2 ranks running, 0 s',
    ],
    ['after a failure without ranks that run', [started(2), phase('run'), failed(true)], ''],
    [
      'when ranks run only after a failure',
      [started(2), began(0), failed(true), phase('run')],
      'waiting for rank 0 to end',
    ],
    [
      'when ranks are started only after a failure',
      [started(2), began(0), failed(true), phase('spawn')],
      'waiting for rank 0 to end',
    ],
    ['while hosts are cleaned up', [up('a'), up('b'), phase('teardown')], 'cleaning up on a, b'],
    ['after a failure during the clean-up', [up('a'), phase('teardown'), failed(true)], 'cleaning up on a'],
    ['after the clean-up', [up('a'), phase('teardown'), hostEnded('a')], ''],
    [
      'after a restart',
      [
        started(2),
        ...hosts,
        up('a'),
        began(0),
        exited(0),
        { time: 0, type: 'restart', attempt: 1, limit: 2, failure: timeout, hosts: [] },
      ],
      '',
    ],
    [
      'after a restart, with ranks that run again',
      [
        started(2),
        began(0),
        exited(0),
        { time: 0, type: 'restart', attempt: 1, limit: 2, failure: timeout, hosts: [] },
        began(0),
        began(1),
        phase('run'),
      ],
      '2 ranks running, 0 s',
    ],
  ])('%s, the line is the expected one', (_when, events, line) => {
    expect(lineAfter(events)).toBe(line);
  });

  test.each([
    [79, '0/3 hosts up; waiting for a (queued, 10 s), b (queued, 7 s), c (queued, 10 s)'],
    [77, '0/3 hosts up; waiting for a (queued, 10 s), b (queued, 7 s), c (queued, 10 s)'],
    [76, '0/3 hosts up; waiting for a (queued, 10 s), b (queued, 7 s) and 1 more'],
    [60, '0/3 hosts up; waiting for a (queued, 10 s) and 2 more'],
    [50, '0/3 hosts up; waiting for 3 hosts'],
    [33, '0/3 hosts up; waiting for 3 hosts'],
    [32, '0/3 hosts up; waiting for 3 hos…'],
    [1, '…'],
    [0, '…'],
  ])('the line shows in %i columns as many hosts as fit', (width, line) => {
    expect(lineAfter(hosts, width, 10_000)).toBe(line);
  });

  test.each([
    [-5000, '0 s'],
    [999, '0 s'],
    [1000, '1 s'],
    [59_999, '59 s'],
    [60_000, '1 min 0 s'],
    [3_599_000, '59 min 59 s'],
    [3_600_000, '1 h 0 min'],
    [7_860_000, '2 h 11 min'],
  ])('after %i ms the line says that ranks have run for %s', (milliseconds, duration) => {
    expect(lineAfter([started(2), phase('run', 1000)], 80, 1000 + milliseconds)).toBe(`2 ranks running, ${duration}`);
  });

  test('the line shows the start until the ranks are started', () => {
    const text = new LiveText();
    expect(text.starting).toBe(true);
    text.event(phase('connect'));
    expect(text.starting).toBe(true);
    text.event(phase('spawn'));
    expect(text.starting).toBe(false);
  });
});
