/** The user's terminal: which descriptors are one, whose it is, the live line on it, and the stop that ^Z asks for. */
import { closeSync, openSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { JobSuspend } from '../../launcher/job/job-suspend.ts';
import { isInForeground, isTerminal } from '../../launcher/model/terminal.ts';
import type { OutputChunk } from '../../launcher/model/event.ts';
import { plainReporter } from '../rig/plain-reporter.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

test.each([
  ['/dev/ptmx', true],
  ['/dev/null', false],
  ['/proc/self/stat', false],
  ['/dev', false],
])('%s is a terminal: %s', (path, is) => {
  const descriptor = openSync(path, 'r');
  expect(isTerminal(descriptor)).toBe(is);
  closeSync(descriptor);
});

test('a descriptor that is closed is no terminal', () => {
  expect(isTerminal(4_000_000)).toBe(false);
});

test.each([
  ['its group is the foreground group', '12 (node) S 1 12 10 34816 12 4194304', true],
  ['another group is', '12 (node) S 1 12 10 34816 99 4194304', false],
  ['there is no terminal', '12 (node) S 1 12 10 0 -1 4194304', true],
  ['its name has blanks and parentheses', '12 (a) b (c) S 1 12 10 34816 99 4194304', false],
])('whether a process may use the terminal: %s', (_what, stat, may) => {
  expect(isInForeground(stat)).toBe(may);
});

test('a process knows that of itself', () => {
  expect(typeof isInForeground()).toBe('boolean');
});

const chunk = (stream: OutputChunk['stream'], text: string): OutputChunk => {
  return { rank: 0, host: 'h', stream, time: 0, bytes: Buffer.from(text), partial: !text.endsWith('\n') };
};

describe('the live line of a job', () => {
  test.each(['stdout', 'stderr'] as const)('it waits while a line of %s is open', async (stream) => {
    const { reporter, seen } = plainReporter({ live: true, tagOutput: 'none' });
    reporter.event({ type: 'job-started', time: 0, jobId: 'j', hosts: ['h'], ranks: 2, programs: [['a']] });
    reporter.event({ type: 'phase', time: 0, phase: 'run' });
    await reporter.output(chunk(stream, 'open'));
    await vi.advanceTimersByTimeAsync(5000);
    expect(seen.stderr).not.toContain('running');
    await reporter.output(chunk(stream, ' closed\n'));
    await vi.advanceTimersByTimeAsync(5000);
    expect(seen.stderr).toContain('2 ranks running');
  });

  test('there is none where nobody wants one', async () => {
    const { reporter, seen } = plainReporter();
    reporter.event({ type: 'phase', time: 0, phase: 'run' });
    await vi.advanceTimersByTimeAsync(5000);
    expect(seen.stderr).toBe('');
  });
});

function suspended() {
  const signals: unknown[] = [];
  vi.spyOn(process, 'kill').mockImplementation((pid, signal) => {
    signals.push(pid === process.pid ? signal : pid);
    return true;
  });
  const asked: boolean[] = [];
  const hosts = Promise.withResolvers<void>();
  const suspend = new JobSuspend((ranks) => {
    asked.push(ranks);
    return hosts.promise;
  });
  return { suspend, signals, asked, answer: hosts.resolve };
}

describe('a job that ^Z stops', () => {
  test('the launcher stops once the hosts have suspended their ranks', async () => {
    const { suspend, signals, asked, answer } = suspended();
    suspend.begin(true);
    suspend.begin(false);
    await vi.advanceTimersByTimeAsync(1999);
    expect([asked, signals]).toEqual([[true], []]);
    answer();
    await vi.advanceTimersByTimeAsync(0);
    expect(signals).toEqual(['SIGSTOP']);
    await vi.advanceTimersByTimeAsync(5000);
    expect(signals).toEqual(['SIGSTOP']);
    suspend.begin(false);
    expect(asked).toEqual([true, false]);
  });

  test('a host that does not answer delays that by 2 s', async () => {
    const { suspend, signals, answer } = suspended();
    suspend.begin(true);
    await vi.advanceTimersByTimeAsync(2000);
    expect(signals).toEqual(['SIGSTOP']);
    answer();
    await vi.advanceTimersByTimeAsync(0);
    expect(signals).toEqual(['SIGSTOP']);
  });

  test('a launcher that is continued before does not stop', async () => {
    const { suspend, signals, answer } = suspended();
    suspend.begin(true);
    suspend.end();
    answer();
    await vi.advanceTimersByTimeAsync(5000);
    expect(signals).toEqual([]);
  });
});
