/** What the reporter for people shows of ranks and events, and the files that output goes to beside it. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test, vi } from 'vitest';
import type { JobEvent, OutputChunk } from '../../launcher/model/event.ts';
import type { Failure } from '../../launcher/model/failure.ts';
import type { OutputPattern } from '../../launcher/model/output-pattern.ts';
import type { JobResult, RankMap } from '../../launcher/model/types.ts';
import { OutputFilesReporter } from '../../launcher/report/output-files.ts';
import { tagOf } from '../../launcher/report/tag.ts';
import { reportUnwritten, unwrittenFile } from '../../launcher/report/unwritten.ts';
import { printablePainted } from '../../launcher/text/colour.ts';
import { failureOf } from '../../launcher/job/system-failure.ts';
import { hostNamed } from '../rig/host-slots.ts';
import { plainReporter } from '../rig/plain-reporter.ts';

const directory = mkdtempSync(join(tmpdir(), 'ncclrun-plain-output-'));
afterAll(() => rmSync(directory, { recursive: true }));

const chunk = (rank: number, text: string, stream: OutputChunk['stream'] = 'stdout'): OutputChunk => ({
  rank,
  host: 'h',
  stream,
  time: 0,
  bytes: Buffer.from(text),
  partial: !text.endsWith('\n'),
});
const started = (ranks: number): JobEvent => ({
  time: 0,
  type: 'job-started',
  jobId: 'j',
  ranks,
  hosts: ['h'],
  programs: [['p']],
});
const exit: Failure = {
  type: 'rank-exit',
  host: 'h',
  rank: 1,
  pid: 1,
  exitCode: 3,
  outOfMemory: false,
  stderrTail: ['last'],
};
const mapOf = (ranks: number): RankMap => ({
  hosts: [hostNamed('h')],
  ranks: Array.from({ length: ranks }, (_, rank) => {
    return { rank, host: 0, program: 0, localRank: rank, localSize: ranks, numa: null, gpu: null };
  }),
});
const ended: JobResult = {
  schemaVersion: 1,
  jobId: 'j',
  ok: true,
  reason: 'ok',
  exitCode: 0,
  restarts: 0,
  failures: [],
  verdicts: [],
  hosts: [],
  ranks: [],
  phases: { allocate: 0, connect: 0, hello: 0, spawn: 0, run: 0, teardown: 0 },
};

describe('--output-ranks', () => {
  const shownRanks = [
    { first: 1, last: 2 },
    { first: 4, last: 4 },
  ];

  test('the output of these ranks is shown, and no other', async () => {
    const { reporter, streams, seen } = plainReporter({ shownRanks });
    reporter.event(started(6));
    for (let rank = 0; rank < 6; rank++) await reporter.output(chunk(rank, 'x\n'));
    await streams.stdout.flush();
    expect(seen.stdout).toBe('[1] x\n[2] x\n[4] x\n');
    const hidden = plainReporter({ shown: false });
    await hidden.reporter.output(chunk(0, 'x\n'));
    expect(hidden.seen).toEqual({ stdout: '', stderr: '' });
  });

  test.each<[number, string | null]>([
    [5, null],
    [4, '--output-ranks names rank 4; this job has ranks 0 to 3'],
    [1, '--output-ranks names rank 2; this job has rank 0 only'],
  ])('ranks beyond the %i of the job are refused', async (ranks, message) => {
    const { reporter } = plainReporter({ shownRanks });
    const failure = await reporter.prepare(mapOf(ranks)).then(() => null, failureOf);
    expect(failure).toEqual(
      message === null ? null : { type: 'usage', message, remedy: 'name ranks of the job, or start more' },
    );
  });
});

const shown = async (events: readonly JobEvent[], options = {}): Promise<string> => {
  const { reporter, streams, seen } = plainReporter(options);
  for (const event of events) reporter.event(event);
  await streams.stderr.flush();
  return seen.stderr;
};

const staging = (host: string): JobEvent => ({ time: 0, type: 'host-staging', host, bytes: 2_000_000 });

describe('events for people', () => {
  test('the first copy of ncclrun is reported, and no other', async () => {
    expect(await shown([staging('a'), staging('b')])).toBe(
      'ncclrun: a has no ncclrun of this version: copying it (2 MB) to all hosts that lack it, once\n',
    );
  });

  test.each<[JobEvent, string]>([
    [
      { time: 0, type: 'shrink', failure: { type: 'timeout', seconds: 1 }, left: 1 },
      'ncclrun: 1 rank goes on without it\n',
    ],
    [
      { time: 0, type: 'shrink', failure: { type: 'timeout', seconds: 1 }, left: 2 },
      'ncclrun: 2 ranks go on without it\n',
    ],
    [
      { time: 0, type: 'shrink', failure: { type: 'timeout', seconds: 1 }, left: 0 },
      'ncclrun: other ranks ended well\n',
    ],
    [
      { time: 0, type: 'restart', attempt: 1, limit: 3, failure: exit, hosts: [] },
      'ncclrun: all ranks are started again (1 of at most 3)\n',
    ],
    [
      { time: 0, type: 'waiting', what: '0/1 hosts up', missing: ['h'], seconds: 2 },
      'ncclrun: 0/1 hosts up: waiting for h (2 s)\n',
    ],
    [{ time: 0, type: 'failure', failure: exit, primary: false }, ''],
    [{ time: 0, type: 'phase', phase: 'run' }, ''],
  ])('the event %j ends with the expected line', async (event, line) => {
    const text = await shown([event]);
    expect(text.slice(-line.length || text.length)).toBe(line);
  });

  test('last words that stand right above a failure are not repeated', async () => {
    for (const [stdoutTaken, stream, repeated] of [
      [false, 'stderr', false],
      [true, 'stderr', false],
      [false, 'stdout', true],
    ] as const) {
      const { reporter, streams, seen } = plainReporter({ stdoutTaken });
      await reporter.output(chunk(1, 'last\n', stream));
      reporter.event({ time: 0, type: 'failure', failure: exit, primary: true });
      await streams.stderr.flush();
      expect([stream, seen.stderr.includes('the end of its stderr')]).toEqual([stream, repeated]);
    }
    const { reporter, streams, seen } = plainReporter({ stdoutTaken: true });
    for (const piece of [chunk(1, 'last\n', 'stderr'), chunk(2, 'x\n')]) await reporter.output(piece);
    reporter.event({ time: 0, type: 'failure', failure: exit, primary: true });
    await streams.stderr.flush();
    expect(seen.stderr).toContain('the end of its stderr');
  });
});

describe('--fold', () => {
  test('equal lines of several ranks are folded, also after a restart', async () => {
    const { reporter, streams, seen } = plainReporter({ fold: true });
    const both = (text: string) => Promise.all([0, 1].map((rank) => reporter.output(chunk(rank, text))));
    reporter.event(started(2));
    await both('a\n');
    for (const rank of [0, 1])
      reporter.event({ time: 0, type: 'rank-exited', rank, host: 'h', exitCode: 1, signal: null });
    reporter.event({ time: 0, type: 'restart', attempt: 1, limit: 1, failure: exit, hosts: [] });
    await both('b\n');
    await reporter.result(ended);
    await streams.stdout.flush();
    expect(seen.stdout).toBe('[0-1] a\n[0-1] b\n');
    const single = plainReporter({ fold: true });
    single.reporter.event(started(1));
    await single.reporter.output(chunk(0, 'a\n'));
    expect(single.seen.stdout).toBe('a\n');
  });

  test('a restart without --fold folds nothing', async () => {
    const { reporter, seen } = plainReporter();
    reporter.event(started(2));
    reporter.event({ time: 0, type: 'restart', attempt: 1, limit: 1, failure: exit, hosts: [] });
    await Promise.all([0, 1].map((rank) => reporter.output(chunk(rank, 'b\n'))));
    expect(seen.stdout).toBe('[0] b\n[1] b\n');
  });
});

test.each<['stdout' | 'stderr', string, string]>([
  ['stdout', '[0] a[0] b\n', '[0] xy\n'],
  ['stderr', '[0] ab\n', '[0] x[0] y\n'],
])('a typed line ends what is open on %s, if that is the terminal', async (terminal, stdout, stderr) => {
  const { reporter, streams, seen } = plainReporter({}, [terminal]);
  reporter.event(started(2));
  for (const piece of [chunk(0, 'a'), chunk(0, 'x', 'stderr')]) await reporter.output(piece);
  reporter.typed();
  for (const piece of [chunk(0, 'b\n'), chunk(0, 'y\n', 'stderr')]) await reporter.output(piece);
  await Promise.all([streams.stdout.flush(), streams.stderr.flush()]);
  expect(seen).toEqual({ stdout, stderr });
});

const toFile = (name: string): OutputPattern => ({
  given: `--output ${name}`,
  parts: [{ text: join(directory, name) }],
});

const perRank = (name: string): OutputPattern => {
  return {
    given: name,
    parts: [{ text: join(directory, `${name}-`) }, { field: 'padded-rank' }, { text: '.' }, { field: 'stream' }],
  };
};

const read = (name: string) => readFileSync(join(directory, name), 'utf8');

describe('--output', () => {
  const tags = { tagOutput: 'auto', timestamps: false } as const;

  test('a shared file has tags and whole lines, and a file of one rank its bytes', async () => {
    const files = new OutputFilesReporter([toFile('all'), perRank('one'), toFile('all')], tags);
    await files.prepare(mapOf(11));
    await files.output(chunk(0, 'a\n'));
    await files.output(chunk(10, 'unfinished'));
    files.event({ time: 0, type: 'rank-exited', rank: 10, host: 'h', exitCode: 0, signal: null });
    await files.output(chunk(0, 'error\n', 'stderr'));
    await files.output(chunk(0, 'b'));
    await files.result();
    expect(read('all')).toBe('[0] a\n[10] unfinished\n[0] error\n[0] b\n');
    expect([read('one-00.stdout'), read('one-00.stderr'), read('one-10.stdout'), read('one-05.stdout')]).toEqual([
      'a\nb',
      'error\n',
      'unfinished',
      '',
    ]);
  });

  test('more files than are made at once are all made, and one that cannot be is named', async () => {
    const files = new OutputFilesReporter([perRank('many')], tags);
    await files.prepare(mapOf(100));
    await files.output(chunk(99, 'x'));
    await files.result();
    expect([read('many-099.stdout'), read('many-063.stderr'), read('many-064.stdout')]).toEqual(['x', '', '']);
    const wrong = new OutputFilesReporter(
      [{ given: '--output /proc/x/%r', parts: [{ text: '/proc/none/' }, { field: 'rank' }] }],
      tags,
    );
    const failure = await wrong.prepare(mapOf(1)).then(() => null, failureOf);
    expect(failure).toMatchObject({
      type: 'usage',
      message: expect.stringMatching(/^--output \/proc\/x\/%r: \/proc\/none\/0 cannot be written: ENOENT/u),
      remedy: 'name a place you may write to; directories that are missing are made',
    });
  });
});

const tag = (tagOutput: 'none' | 'rank', timestamps: boolean) =>
  tagOf(chunk(3, 'x'), true, { tagOutput, timestamps }, (_format, text) => text);

test('a tag has the time, the rank, or both', () => {
  vi.stubEnv('TZ', 'UTC');
  const [time = ''] = /^\S+ \S+ /u.exec(tag('none', true)) ?? [];
  expect(time).toMatch(/^[0-9-]{10} [0-9:.]{12} $/u);
  expect([tag('none', false), tag('rank', false), tag('rank', true)]).toEqual(['', '[3] ', `${time}[3] `]);
  vi.unstubAllEnvs();
});

test('control characters are shown as text between colours, and colours stay', () => {
  expect(printablePainted('a\u0007\u001B[31mred\u0007\u001B[39m\u001B[5m')).toBe(
    `${printablePainted('a\u0007')}\u001B[31m${printablePainted('red\u0007')}\u001B[39m${printablePainted('x\u001B[5m').slice(1)}`,
  );
  expect(printablePainted('x\u001B[5m')).not.toContain('\u001B');
  expect(printablePainted('a\u0007')).not.toContain('\u0007');
});

test('files that took no more are reported after the result, and decide the status only of a job that ended well', async () => {
  const { streams, seen } = plainReporter();
  const { reporter } = plainReporter();
  const failing = Object.assign(reporter, {
    unwritten: () => unwrittenFile('--report', 'r.json', new Error('ENOSPC')),
  });
  expect(await reportUnwritten([plainReporter().reporter], streams, 3)).toBe(3);
  expect(seen.stderr).toBe('');
  expect(await reportUnwritten([failing], streams, 3)).toBe(3);
  expect(seen.stderr).toContain('ncclrun: cannot write the output: --report r.json: ENOSPC\n');
  expect(await reportUnwritten([failing, failing], streams, 0)).toBe(125);
});
