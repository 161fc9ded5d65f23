import { PassThrough } from 'node:stream';
import { describe, expect, test, vi } from 'vitest';
import type { JobEvent } from '../../launcher/model/event.ts';
import { Live } from '../../launcher/report/live.ts';
import { LiveText } from '../../launcher/report/live-text.ts';
import { Writer } from '../../launcher/report/writer.ts';

const names = ['node1', 'node2', 'node3', 'node4'];
const started: JobEvent = { time: 0, type: 'job-started', jobId: 'j', ranks: 8, hosts: names, programs: [['p']] };
const connecting = (host: string): JobEvent => ({ time: 1000, type: 'host-connecting', host });
const up = (host: string): JobEvent => ({ time: 1000, type: 'host-up', host, cores: 1, gpus: 0, pid: 1 });
const phase = (name: 'spawn' | 'run' | 'teardown'): JobEvent => ({ time: 10_000, type: 'phase', phase: name });
const began = (rank: number): JobEvent => ({ time: 0, type: 'rank-started', rank, host: 'node1', pid: 1 });
const exited = (rank: number): JobEvent => {
  return { time: 0, type: 'rank-exited', rank, host: 'node1', exitCode: 0, signal: null };
};

describe('the live line', () => {
  test('the live line lists the hosts that a start waits for, with step and duration', () => {
    const text = new LiveText();
    for (const event of [started, ...names.map(connecting), up('node1'), up('node3')]) text.event(event);
    text.event({ time: 2000, type: 'host-step', host: 'node2', step: 'ssh auth' });
    expect(text.line(80, 13_000)).toBe('2/4 hosts up; waiting for node2 (ssh auth, 12 s), node4 (queued, 12 s)');
    expect(text.line(60, 13_000)).toBe('2/4 hosts up; waiting for node2 (ssh auth, 12 s) and 1 more');
    expect(text.line(40, 13_000)).toBe('2/4 hosts up; waiting for 2 hosts');
    expect(text.line(8, 13_000)).toBe('2/4 hos…');
  });

  test('the live line keeps its hosts after a change of the remote shell, and resets at a restart', () => {
    const text = new LiveText();
    for (const event of [started, ...names.map(connecting), up('node1')]) text.event(event);
    text.event({ time: 2000, type: 'host-remote-shell', host: 'node2', message: 'by the system’s ssh' });
    expect(text.line(20, 13_000)).toMatch(/^1\/4 hosts up/);
    for (const event of [phase('spawn'), began(0)]) text.event(event);
    text.event({ time: 2000, type: 'binding', rank: 0, host: 'node1', bound: false, cpus: [0], numa: null, gpu: null });
    expect(text.line(80, 13_000)).toBe('1/8 ranks started');
    text.event({ time: 0, type: 'restart', attempt: 1, limit: 1, failure: { type: 'timeout', seconds: 1 }, hosts: [] });
    text.event(connecting('node1'));
    expect(text.line(20, 13_000)).toMatch(/^0\/1 host up/);
  });

  test('the live line counts ranks as they start, run and exit', () => {
    const text = new LiveText();
    for (const event of [started, phase('spawn'), began(0), began(1)]) text.event(event);
    expect(text.line(80, 0)).toBe('2/8 ranks started');
    for (let rank = 2; rank < 8; rank++) text.event(began(rank));
    text.event(phase('run'));
    expect(text.line(80, 75_000)).toBe('8 ranks running, 1 min 5 s');
    for (const rank of [0, 2, 3]) text.event(exited(rank));
    expect(text.line(80, 75_000)).toBe('5/8 ranks running (ranks 1,4-7), 1 min 5 s');
    text.event({ time: 0, type: 'failure', failure: { type: 'timeout', seconds: 1 }, primary: true });
    expect(text.line(80, 75_000)).toBe('waiting for ranks 1,4-7 to end');
  });

  test('the live line disappears before other output and returns afterwards', async () => {
    vi.useFakeTimers();
    try {
      const seen = { text: '' };
      const stream = new PassThrough();
      stream.on('data', (data: Buffer) => (seen.text += data.toString()));
      const stderr = new Writer(() => stream);
      let lineOpen = false;
      const text = new LiveText();
      const options = { text, stderr, stdout: null, columns: () => 80, mayDraw: () => !lineOpen };
      const live = new Live({ ...options, paint: () => (_format, shown) => shown });
      text.event(connecting('a'));
      expect(live.showsStart).toBe(true);
      await vi.advanceTimersByTimeAsync(450);
      expect(seen.text).toContain('\r\u001B[K0/1 host up; waiting for a (queued, ');
      seen.text = '';
      await stderr.write(Buffer.from('a line\n'));
      await stderr.write(Buffer.from('another\n'));
      expect(seen.text).toBe('\r\u001B[Ka line\nanother\n');
      lineOpen = true;
      await vi.advanceTimersByTimeAsync(1000);
      expect(seen.text).toBe('\r\u001B[Ka line\nanother\n');
      lineOpen = false;
      await vi.advanceTimersByTimeAsync(200);
      expect(seen.text).toContain('another\n\r\u001B[K0/1 host up');
      seen.text = '';
      live.end();
      await vi.advanceTimersByTimeAsync(5000);
      expect(seen.text).toBe('\r\u001B[K');
    } finally {
      vi.useRealTimers();
    }
  });
});
