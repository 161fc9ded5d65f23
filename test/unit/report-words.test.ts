/** The words of reports at their borders: hangs, failures, and the verbose lines of events. */
import { describe, expect, test } from 'vitest';
import type { JobEvent } from '../../launcher/model/event.ts';
import type { Failure } from '../../launcher/model/failure.ts';
import { failureText } from '../../launcher/report/failure-text.ts';
import { hangText } from '../../launcher/report/hang-text.ts';
import { resultSummary } from '../../launcher/report/summary.ts';
import { bindingText, verboseText, waitingText } from '../../launcher/report/verbose-text.ts';
import { hostileHang } from '../rig/hostile.ts';
import { plainReporter } from '../rig/plain-reporter.ts';

const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `n${index}`);
const timeout: Failure = { type: 'timeout', seconds: 1 };

describe('a hang', () => {
  test.each([
    ['certain', 'm'],
    ['likely', 'm'],
    ['suspected', 'm (suspected)'],
  ] as const)('a hang whose verdict is %s is one sentence', (confidence, words) => {
    const verdict = { ...hostileHang.verdict, message: 'm', confidence };
    expect(hangText({ ...hostileHang, verdict })).toBe(words);
  });
});

const exited = (exitCode: number) => {
  return { type: 'rank-exit', host: 'h', rank: 0, pid: 1, exitCode, outOfMemory: false, stderrTail: [] } as const;
};
const exit = (exitCode: number): Failure => exited(exitCode);

const unreachable = (detail: string): Failure => {
  return { type: 'host-unreachable', host: 'h', phase: 'connect', cause: 'other', detail, remedy: null };
};

const placed = (text: string, column: number, length: number): readonly string[] =>
  failureText({ type: 'usage', message: 'm', remedy: null, position: { source: 's', line: 1, column, text, length } })
    .details;

describe('a failure', () => {
  test.each([
    [1, 'its own messages above, if any, say why'],
    [126, 'status 126 is how a shell says that a program is not executable'],
    [127, 'status 127: a shell found no such program, or the loader no such shared library'],
    [128, 'its own messages above, if any, say why'],
    [129, "status 129 may be a shell's way to say: died of signal 1"],
    [159, "status 159 may be a shell's way to say: died of signal 31"],
    [160, 'its own messages above, if any, say why'],
  ])('status %i has its remedy', (status, remedy) => {
    expect(failureText(exit(status)).remedy).toBe(remedy);
  });

  test('the remedy for a rank that Open MPI ended in MPI_Init names mpirun', () => {
    const stderrTail = ['[h:394] Local abort before MPI_INIT completed completed successfully, but …'];
    expect(failureText({ ...exited(1), stderrTail }).remedy).toBe(
      'Open MPI finds its ranks by PMIx alone: start the program with mpirun or srun --mpi=pmix, or build it against MPICH',
    );
  });

  test('the remedy follows from last words also where they are in sight already', async () => {
    const words = '[h:394] Local abort before MPI_INIT completed completed successfully, but …';
    const { reporter, seen } = plainReporter();
    await reporter.output({
      rank: 0,
      host: 'h',
      stream: 'stderr',
      time: 0,
      bytes: Buffer.from(`${words}\n`),
      partial: false,
    });
    reporter.event({ type: 'failure', time: 0, primary: true, failure: { ...exited(1), stderrTail: [words] } });
    await reporter.output({ rank: 0, host: 'h', stream: 'stderr', time: 0, bytes: Buffer.from('x\n'), partial: false });
    expect(seen.stderr.match(/Local abort/gu)).toHaveLength(1);
    expect(seen.stderr).toContain('next: Open MPI finds its ranks by PMIx alone');
  });

  test.each([
    [8, 'n0, n1, n2, n3, n4, n5, n6, n7'],
    [10, 'n0, n1, n2, n3, n4, n5, n6, n7 and 2 more'],
  ])('the sentence about %i late ranks names at most eight', (count, list) => {
    const { sentence } = failureText({ type: 'spawn-timeout', seconds: 3, late: names(count) });
    expect(sentence).toBe(`the ranks had not all started within 3 s, and the job was ended; late: ${list}`);
  });

  test('a failure quotes at most 16 lines of a remote side, without empty ones', () => {
    const lines = (count: number) => failureText(unreachable(names(count).join('\r\n\n'))).details;
    expect(lines(2)).toEqual(['| n0', '| n1']);
    expect(lines(16)).toEqual(names(16).map((name) => `| ${name}`));
    expect(lines(17)).toEqual([...names(16).map((name) => `| ${name}`), '… (1 more lines)']);
    expect(lines(20).at(-1)).toBe('… (4 more lines)');
  });

  test('the place in a line is marked, and of a long line its neighbourhood is shown', () => {
    expect(placed('a: b', 4, 1)).toEqual(['a: b', '   ~']);
    expect(placed('ab', 3, 0)).toEqual(['ab', '  ~']);
    expect(placed('\tab', 2, 2)).toEqual(['\tab', '\t~~']);
    const long = `${'x'.repeat(60)}!${'y'.repeat(100)}`;
    expect(placed(long, 61, 1)).toEqual([long.slice(0, 120), `${' '.repeat(60)}~`]);
    expect(placed(`z${long}`, 62, 1)).toEqual([long.slice(0, 120), `${' '.repeat(60)}~`]);
  });

  test('a summary names at most eight kinds of failures behind the primary one', () => {
    const failures = (count: number): Failure[] => [
      timeout,
      ...Array.from({ length: count }, (_, index) => exit(index + 1)),
    ];
    const summary = (count: number, shown: Failure | null = timeout) =>
      resultSummary(
        {
          schemaVersion: 1,
          jobId: 'j',
          ok: false,
          reason: 'timeout',
          exitCode: 1,
          restarts: 0,
          failures: failures(count),
          verdicts: [],
          hosts: [],
          ranks: [],
          phases: { allocate: 0, connect: 0, hello: 0, spawn: 0, run: 0, teardown: 0 },
        },
        shown,
        (_format, text) => text,
      ).split('\n');
    expect(summary(8)).toHaveLength(9);
    expect(summary(10).slice(7)).toEqual([
      'ncclrun: also: rank 0 on h (pid 1) exited with status 8',
      'ncclrun: and 2 failures of other kinds',
      '',
    ]);
    expect(summary(0)).toEqual(['']);
    expect(summary(0, { ...timeout })).toEqual(['']);
    const block = [
      'ncclrun: the job did not end within 1 s and was ended',
      '  next: raise --timeout, or find out which rank hangs',
      '',
    ];
    expect(summary(0, null)).toEqual(block);
    expect(summary(0, exit(1))).toEqual(block);
  });
});

describe('verbose lines', () => {
  const time = 0;
  test.each<[JobEvent, string | null]>([
    [
      { time, type: 'job-started', jobId: 'j', ranks: 1, hosts: names(6), programs: [['a', 'x'], ['b']] },
      'job j: 1 rank of a x : b on n0, n1, n2, n3, n4, n5',
    ],
    [
      { time, type: 'job-started', jobId: 'j', ranks: 2, hosts: names(8), programs: [['a']] },
      'job j: 2 ranks of a on n0, n1, n2, n3, n4, n5 and 2 more',
    ],
    [{ time, type: 'phase', phase: 'run' }, 'phase: run'],
    [{ time, type: 'host-connecting', host: 'h' }, 'h: connecting'],
    [{ time, type: 'host-staging', host: 'h', bytes: 1_000_001 }, 'h: gets a copy of ncclrun, 2 MB'],
    [{ time, type: 'host-step', host: 'h', step: 'ssh' }, 'h: ssh'],
    [{ time, type: 'host-remote-shell', host: 'h', message: 'm' }, 'h: m'],
    [{ time, type: 'host-ended', host: 'h' }, 'h: ended'],
    [{ time, type: 'rank-started', rank: 1, host: 'h', pid: 2 }, 'rank 1 on h: started, pid 2'],
    [{ time, type: 'network', message: 'network Socket' }, 'network Socket'],
    [{ time, type: 'rank-exited', rank: 1, host: 'h', exitCode: 3, signal: null }, 'rank 1 on h: ended, status 3'],
    [{ time, type: 'communicator', ranks: 2, hosts: 1 }, 'communicator of 2 ranks on 1 host wired up'],
    [
      { time, type: 'tuning', host: 'h', ranks: 2, file: 'f', key: '', measured: true },
      'h: the variants of 2 ranks are those of f',
    ],
    [
      { time, type: 'tuning', host: 'h', ranks: 1, file: 'f', key: '', measured: false },
      'h: the variants of 1 rank are measured for f',
    ],
    [{ time, type: 'signal', signal: 'SIGINT', forwarded: true }, 'SIGINT forwarded to the ranks'],
    [{ time, type: 'signal', signal: 'SIGINT', forwarded: false }, 'SIGINT received'],
    [{ time, type: 'failure', failure: timeout, primary: true }, null],
    [{ time, type: 'failure', failure: timeout, primary: false }, 'also: the job did not end within 1 s and was ended'],
    [{ time, type: 'job-ended', ok: true, reason: 'ok', exitCode: 0 }, 'job ended: ok, status 0'],
    [{ time, type: 'notice', message: 'm' }, null],
  ])('the event %j has the expected line', (event, line) => {
    expect(verboseText(event)).toBe(line);
  });

  test('a binding lists CPUs, NUMA node and GPU, and a waiting start the missing hosts', () => {
    const binding = { rank: 1, host: 'h', bound: true, cpus: [0, 1, 2], numa: null, gpu: null };
    expect(bindingText(binding)).toBe('rank 1 on h: bound to CPUs 0-2');
    expect(bindingText({ ...binding, bound: false, cpus: [4], numa: 1 })).toBe(
      'rank 1 on h: not bound, CPU 4, NUMA node 1',
    );
    expect(bindingText({ ...binding, gpu: 2 })).toBe('rank 1 on h: bound to CPUs 0-2, GPU 2');
    expect(waitingText({ time, type: 'waiting', what: '1/2 up', missing: ['h'], seconds: 3 })).toBe(
      '1/2 up: waiting for h (3 s)',
    );
  });
});
