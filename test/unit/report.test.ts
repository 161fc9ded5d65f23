import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import type { JobEvent, OutputChunk } from '../../launcher/model/event.ts';
import { FailureError } from '../../launcher/model/failure-error.ts';
import type { Failure } from '../../launcher/model/failure.ts';
import type { JobResult } from '../../launcher/model/types.ts';
import { wantsColour } from '../../launcher/text/colour.ts';
import { composeReporters } from '../../launcher/report/compose.ts';
import { EventsReporter } from '../../launcher/report/events.ts';
import type { PlainOptions } from '../../launcher/report/plain.ts';
import { Batch } from '../../launcher/report/batch.ts';
import { ranges } from '../../launcher/text/ranges.ts';
import { JsonResultReporter, ResultFileReporter } from '../../launcher/report/result.ts';
import { Writer } from '../../launcher/report/writer.ts';
import { plainReporter } from '../rig/plain-reporter.ts';

const chunk = (rank: number, text: string, stream: OutputChunk['stream'] = 'stdout'): OutputChunk => ({
  rank,
  host: 'node1',
  stream,
  time: 0,
  bytes: Buffer.from(text),
  partial: !text.endsWith('\n'),
});

/** A plain reporter of a job of so many ranks. */
function rig(ranks: number, options: Partial<PlainOptions> = {}, terminal = false) {
  const { reporter, streams, seen } = plainReporter(options, terminal ? ['stdout'] : []);
  const base = { time: 0 };
  reporter.event({ ...base, type: 'job-started', jobId: 'j', ranks, hosts: ['node1'], programs: [['prog']] });
  const exited = (rank: number): JobEvent => ({
    ...base,
    type: 'rank-exited',
    rank,
    host: 'node1',
    exitCode: 0,
    signal: null,
  });
  return { reporter, streams, seen, exited };
}

const result = (failures: readonly Failure[], ended: readonly number[] = []): JobResult => ({
  schemaVersion: 1,
  jobId: 'j',
  ok: failures.length === 0,
  reason: failures[0]?.type ?? 'ok',
  exitCode: 0,
  restarts: 0,
  failures,
  verdicts: [],
  hosts: [],
  ranks: [0, 1, 2, 3].map((rank) => ({
    rank,
    host: 'node1',
    pid: 1,
    exitCode: 0,
    signal: null,
    startedAt: null,
    endedAt: null,
    endedByUs: ended.includes(rank),
  })),
  phases: { allocate: 0, connect: 0, hello: 0, spawn: 0, run: 0, teardown: 0 },
});

function prefixed(bytes: Uint8Array, prefix: string, atLineStart: boolean): Buffer {
  const batch = new Batch(0);
  batch.append(bytes, prefix, atLineStart);
  return Buffer.from(batch.take());
}

describe('tags of output lines', () => {
  test.each<[string, string, boolean, string]>([
    ['a\n', '[0] ', true, '[0] a\n'],
    ['a\nb\n', '[0] ', true, '[0] a\n[0] b\n'],
    ['a', '[0] ', true, '[0] a'],
    ['a\nb', '[0] ', true, '[0] a\n[0] b'],
    ['\n\n', '[0] ', true, '[0] \n[0] \n'],
    ['rest\nb\n', '[0] ', false, 'rest\n[0] b\n'],
    ['a\nb\n', '', true, 'a\nb\n'],
    ['', '[0] ', true, ''],
    ['$& $1 é\n', '[0] ', true, '[0] $& $1 é\n'],
  ])('Batch inserts the tag before each line of %j', (text, prefix, atLineStart, expected) => {
    expect(prefixed(Buffer.from(text), prefix, atLineStart).toString()).toBe(expected);
  });

  test('arbitrary bytes stay unchanged behind the tag', () => {
    const bytes = Uint8Array.from({ length: 256 }, (_, index) => index);
    const whole = Array.from(prefixed(bytes, '[0] ', true));
    expect(whole.filter((_, index) => index >= 4 && (index < 15 || index >= 19))).toEqual(Array.from(bytes));
  });
});

describe("ranks' output", () => {
  test('the output of a single rank passes unchanged', async () => {
    const { reporter, seen } = rig(1);
    await reporter.output(chunk(0, 'a\nb'));
    await reporter.output(chunk(0, 'error\n', 'stderr'));
    await reporter.result(result([]));
    expect(seen).toEqual({ stdout: 'a\nb', stderr: 'error\n' });
  });

  test.each<[PlainOptions['tagOutput'], number, string]>([
    ['auto', 2, '[1] a\n'],
    ['auto', 1, 'a\n'],
    ['rank', 1, '[1] a\n'],
    ['host', 2, '[1@node1] a\n'],
    ['none', 2, 'a\n'],
  ])('--tag-output=%s gives the right tag with %i ranks', async (tagOutput, ranks, expected) => {
    const { reporter, seen } = rig(ranks, { tagOutput });
    await reporter.output(chunk(1, 'a\n'));
    expect(seen.stdout).toBe(expected);
  });

  test('--json reserves stdout for the result', async () => {
    const { reporter, seen, streams } = rig(2, { stdoutTaken: true });
    const both = composeReporters([reporter, new JsonResultReporter(streams.stdout)]);
    await both.output(chunk(1, 'a\n'));
    await both.result(result([]));
    expect(seen.stderr).toBe('[1] a\n');
    expect(JSON.parse(seen.stdout)).toMatchObject({ schemaVersion: 1, ok: true });
  });

  test('a long line that arrives in pieces stays in one line', async () => {
    const { reporter, seen } = rig(2);
    const taken = [chunk(0, 'long'), chunk(1, 'x\n'), chunk(0, 'er'), chunk(1, 'y\n'), chunk(0, 'line\nz\n')].map(
      (piece) => reporter.output(piece),
    );
    await Promise.all(taken);
    await reporter.result(result([]));
    expect(seen.stdout).toBe('[0] longerline\n[0] z\n[1] x\n[1] y\n');
  });

  test('an unfinished last line gets a newline when other output waits', async () => {
    const { reporter, seen, exited } = rig(2);
    await Promise.all([reporter.output(chunk(0, 'end')), reporter.output(chunk(1, 'x\n'))]);
    expect(seen.stdout).toBe('[0] end');
    reporter.event(exited(0));
    await reporter.output(chunk(1, 'y'));
    await reporter.result(result([]));
    expect(seen.stdout).toBe('[0] end\n[1] x\n[1] y\n');
  });

  test("stdout and stderr of a rank do not break each other's lines", async () => {
    const { reporter, seen } = rig(2, { stdoutTaken: true });
    const pieces = [chunk(0, 'long'), chunk(0, 'error\n', 'stderr'), chunk(0, 'er\n')];
    await Promise.all(pieces.map((piece) => reporter.output(piece)));
    expect(seen.stderr).toBe('[0] longer\n[0] error\n');
  });

  test('held output appears at the end, whichever line is unfinished', async () => {
    const { reporter, seen } = rig(3);
    await Promise.all([chunk(0, 'a'), chunk(1, 'b'), chunk(2, 'c\n')].map((piece) => reporter.output(piece)));
    await reporter.result(result([]));
    expect(seen.stdout).toBe('[0] a\n[1] b\n[2] c\n');
  });

  test('a rank that stalls inside a line delays the others for a limited time', async () => {
    const { reporter, seen, streams } = rig(2);
    await Promise.all([reporter.output(chunk(0, 'prompt: ')), reporter.output(chunk(1, 'x\n'))]);
    await expect.poll(() => seen.stdout).toBe('[0] prompt: \n[1] x\n');
    await reporter.output(chunk(0, 'answer\n'));
    await streams.stdout.flush();
    expect(seen.stdout).toBe('[0] prompt: \n[1] x\n[0] answer\n');
  });

  test('output beyond the 16 MiB that are held waits', async () => {
    const { reporter } = rig(2);
    void reporter.output(chunk(0, 'open'));
    const half = `${'x'.repeat(9 * 1024 * 1024)}\n`;
    const order: string[] = [];
    const first = reporter.output(chunk(1, half)).then(() => order.push('held'));
    const second = reporter.output(chunk(1, half)).then(() => order.push('waited'));
    await first;
    expect(order).toEqual(['held']);
    await reporter.output(chunk(0, ' done\n'));
    await second;
  });

  test('messages of the launcher begin on a new line', async () => {
    const { reporter, seen, streams } = rig(1);
    await reporter.output(chunk(0, 'no newline', 'stderr'));
    reporter.event({ time: 0, type: 'notice', message: 'hear' });
    await streams.stderr.flush();
    expect(seen.stderr).toBe('no newline\nncclrun: hear\n');
  });
});

describe('a slow or lost reader', () => {
  test('output() resolves when the system has taken the bytes', async () => {
    const taken: string[] = [];
    const stalled: (() => void)[] = [];
    const slow = new Writable({
      write: (bytes: Buffer, _encoding, done) => {
        taken.push(bytes.toString());
        stalled.push(done);
      },
    });
    const writer = new Writer(() => slow);
    const resolved: string[] = [];
    const all = ['a', 'b', 'c'].map((text) => writer.write(Buffer.from(text)).then(() => resolved.push(text)));
    await new Promise((resolve) => setImmediate(resolve));
    expect([taken, resolved]).toEqual([['a'], []]);
    stalled.shift()?.();
    await expect.poll(() => stalled.length).toBe(1);
    stalled.shift()?.();
    await Promise.all(all);
    expect([taken, resolved]).toEqual([
      ['a', 'bc'],
      ['a', 'b', 'c'],
    ]);
  });

  test('a closed pipe fails waiting and later writes with SIGPIPE', async () => {
    const reader = spawn('true', { stdio: ['pipe', 'ignore', 'ignore'] });
    await once(reader, 'exit');
    const stdin: Writable = reader.stdin;
    const writer = new Writer(() => stdin);
    const failure = { failure: { type: 'interrupt', signal: 'SIGPIPE' } };
    const written = await Promise.allSettled([writer.write(Buffer.from('a\n')), writer.write(Buffer.from('b\n'))]);
    expect(written).toMatchObject([{ reason: failure }, { reason: failure }]);
    await expect(writer.write(Buffer.from('c\n'))).rejects.toMatchObject(failure);
    await expect(writer.write(Buffer.from('c\n'))).rejects.toBeInstanceOf(FailureError);
    await writer.flush();
  });

  test('a full pipe does not block the event loop', async () => {
    const reader = spawn('cat', { stdio: ['pipe', 'ignore', 'ignore'] });
    await once(reader, 'spawn');
    reader.kill('SIGSTOP');
    const stdin: Writable = reader.stdin;
    const writer = new Writer(() => stdin);
    const big = writer.write(Buffer.alloc(4 * 1024 * 1024, 'x')).then(() => 'written');
    const first = await Promise.race([big, new Promise((resolve) => setImmediate(resolve, 'loop'))]);
    expect(first).toBe('loop');
    reader.kill('SIGCONT');
    await big;
    stdin.end();
    await once(reader, 'exit');
  });
});

describe('the text of a failure', () => {
  const died: Failure = {
    type: 'rank-signal',
    host: 'node1',
    rank: 2,
    pid: 4711,
    signal: 'SIGSEGV',
    outOfMemory: false,
    stderrTail: [],
  };

  test('the primary failure appears at once, and the ended ranks at the end', async () => {
    const { reporter, seen, streams } = rig(4);
    reporter.event({ time: 0, type: 'failure', failure: died, primary: true });
    await streams.stderr.flush();
    expect(seen.stderr).toBe(
      'ncclrun: rank 2 on node1 (pid 4711) died of SIGSEGV (segmentation fault), status 139\n' +
        '  next: a core file (ulimit -c unlimited) and a debugger show where\n',
    );
    seen.stderr = '';
    await reporter.result(result([died], [0, 1, 3]));
    expect(seen.stderr).toBe('ncclrun: 3 other ranks were ended because of it: 0-1,3\n');
  });

  test('the result prints every failure that no event reported before', async () => {
    const { reporter, seen } = rig(4);
    const exit: Failure = {
      type: 'rank-exit',
      host: 'node2',
      rank: 0,
      pid: 12,
      exitCode: 3,
      outOfMemory: false,
      stderrTail: [],
    };
    await reporter.result(result([died, exit], [1]));
    expect(seen.stderr.split('\n')).toEqual([
      'ncclrun: rank 2 on node1 (pid 4711) died of SIGSEGV (segmentation fault), status 139',
      '  next: a core file (ulimit -c unlimited) and a debugger show where',
      'ncclrun: also: rank 0 on node2 (pid 12) exited with status 3',
      'ncclrun: 1 other rank was ended because of it: 1',
      '',
    ]);
    expect(seen.stdout).toBe('');
  });

  test('equal failures of several ranks are printed once', async () => {
    const { reporter, seen } = rig(4);
    const spawn = { type: 'spawn', host: 'n', program: 'p', cause: 'not-found', errno: 'ENOENT', remedy: 'r' } as const;
    const exit = { type: 'rank-exit', host: 'n', pid: 1, exitCode: 3, outOfMemory: false, stderrTail: [] } as const;
    const failures = [
      { ...spawn, rank: 0 },
      { ...exit, rank: 3 },
      { ...spawn, rank: 2 },
      { ...exit, rank: 4 },
      { ...spawn, rank: 1 },
    ];
    await reporter.result(result(failures));
    expect(seen.stderr.split('\n')).toEqual([
      'ncclrun: cannot start p on n for rank 0: there is no such program (ENOENT)',
      '  next: r',
      'ncclrun: the same for ranks 1-2',
      'ncclrun: also: rank 3 on n (pid 1) exited with status 3; the same for rank 4',
      '',
    ]);
  });

  test('a broken pipe prints nothing', async () => {
    const { reporter, seen } = rig(4);
    const failure: Failure = { type: 'interrupt', signal: 'SIGPIPE' };
    reporter.event({ time: 0, type: 'failure', failure, primary: true });
    await reporter.result(result([failure], [0, 1]));
    expect(seen.stderr).toBe('');
  });

  test('a timeout lists the ranks that were still running', async () => {
    const { reporter, seen } = rig(4);
    await reporter.result(result([{ type: 'timeout', seconds: 3 }], [2, 3]));
    expect(seen.stderr).toContain('the job did not end within 3 s');
    expect(seen.stderr).toContain('2 ranks were ended because of it: 2-3');
  });
});

test('--verbose prints hosts, ranks and phases', async () => {
  const { reporter, seen, streams } = rig(2, { verbose: true });
  reporter.event({ time: 0, type: 'host-up', host: 'node1', cores: 4, gpus: 0, pid: 9 });
  reporter.event({ time: 0, type: 'rank-exited', rank: 1, host: 'node1', exitCode: null, signal: 'SIGTERM' });
  reporter.event({
    time: 0,
    type: 'waiting',
    what: 'start',
    missing: ['a', 'b', 'c', 'd', 'e', 'f', 'g'],
    seconds: 12,
  });
  await streams.stderr.flush();
  expect(seen.stderr).toBe(
    'ncclrun: job j: 2 ranks of prog on node1\n' +
      'ncclrun: node1: up, 4 cores, 0 GPUs, agent pid 9\n' +
      'ncclrun: rank 1 on node1: ended, SIGTERM (terminated)\n' +
      'ncclrun: start: waiting for a, b, c, d, e, f and 1 more (12 s)\n',
  );
});

describe('result and event files', () => {
  const directory = mkdtempSync(join(tmpdir(), 'ncclrun-report-'));

  test('--report writes the result in place of an earlier one', async () => {
    const path = join(directory, 'report.json');
    closeSync(openSync(path, 'w'));
    const reporter = await ResultFileReporter.open(path);
    await reporter.result(result([]));
    expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual(result([]));
  });

  test('--events writes one object per line with its schema version', async () => {
    const path = join(directory, 'events.jsonl');
    const reporter = await EventsReporter.open(path);
    reporter.event({ time: 5, type: 'phase', phase: 'run' });
    reporter.event({ time: 6, type: 'notice', message: 'two\nlines' });
    await reporter.result();
    const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
    expect(lines.map((line): unknown => JSON.parse(line))).toEqual([
      { schemaVersion: 1, time: 5, type: 'phase', phase: 'run' },
      { schemaVersion: 1, time: 6, type: 'notice', message: 'two\nlines' },
    ]);
  });

  test('a file that cannot be opened is reported before the job', async () => {
    await expect(EventsReporter.open(directory)).rejects.toThrow('EISDIR');
    await expect(ResultFileReporter.open(join(directory, 'no', 'where'))).rejects.toThrow('ENOENT');
  });
});

test.each<[boolean, Record<string, string>, boolean]>([
  [true, {}, true],
  [false, {}, false],
  [true, { NO_COLOR: '1' }, false],
  [true, { NO_COLOR: '' }, true],
  [true, { TERM: 'dumb' }, false],
  [false, { FORCE_COLOR: '1' }, true],
  [true, { FORCE_COLOR: '0' }, false],
  [false, { FORCE_COLOR: '1', NO_COLOR: '1' }, true],
])('terminal %s with environment %o gives colour %s', (isTerminal, environment, expected) => {
  expect(wantsColour(isTerminal, environment)).toBe(expected);
});

test.each<[number[], string]>([
  [[], ''],
  [[3], '3'],
  [[0, 1, 2], '0-2'],
  [[0, 1, 3, 5, 6], '0-1,3,5-6'],
])('ranges() prints %o as "%s"', (numbers, text) => {
  expect(ranges(numbers)).toBe(text);
});

describe('a line typed at the terminal', () => {
  test('the typed newline ends the prompt, and the next output begins a line', async () => {
    const { reporter, streams, seen } = rig(2, {}, true);
    await reporter.output(chunk(0, 'name? '));
    const other = reporter.output(chunk(1, 'waits\n'));
    composeReporters([reporter, reporter]).typed?.();
    await reporter.output(chunk(0, 'hello bob\n'));
    await Promise.all([other, streams.stdout.flush()]);
    expect(seen.stdout).toBe('[0] name? [1] waits\n[0] hello bob\n'); // the terminal itself shows the newline
  });

  test('a prompt in a file continues in its line', async () => {
    const { reporter, streams, seen } = rig(2);
    await reporter.output(chunk(0, 'name? '));
    reporter.typed();
    await reporter.output(chunk(0, 'hello bob\n'));
    await streams.stdout.flush();
    expect(seen.stdout).toBe('[0] name? hello bob\n');
  });
});
