/** What the kernel says about a process, as the agent reads it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { processFacts, sleepOf, stolenMs } from '../../worker/agent/rank-process.ts';
import { until } from '../rig/until.ts';

it('a process that waits for its standard input sleeps in a read of that pipe', async () => {
  const child = spawn('cat', { stdio: ['pipe', 'ignore', 'ignore'] });
  await once(child, 'spawn');
  const pid = child.pid ?? 0;
  await until('cat reads', () => sleepOf(pid)?.call === 'read');
  expect(processFacts(pid)).toMatchObject({ state: 'sleeping' });
  expect(sleepOf(pid)?.file).toMatch(/^(?:socket|pipe):\[\d+\]$/);
  child.kill('SIGKILL');
  await once(child, 'exit');
});

it('a stopped process is stopped, and one that has ended is gone', async () => {
  const child = spawn('cat', { stdio: ['pipe', 'ignore', 'ignore'] });
  await once(child, 'spawn');
  const pid = child.pid ?? 0;
  child.kill('SIGSTOP');
  await until('cat is stopped', () => processFacts(pid).state === 'stopped');
  child.kill('SIGKILL');
  await once(child, 'exit');
  expect(processFacts(pid)).toEqual({ state: 'gone', cpuMs: 0, throttled: null });
  expect(sleepOf(pid)).toBeNull();
});

it('a process that computes uses CPU time', () => {
  const before = processFacts(process.pid);
  const end = process.cpuUsage().user + 50_000;
  while (process.cpuUsage().user < end) Math.sqrt(end);
  const after = processFacts(process.pid);
  expect(after.state).toBe('running');
  expect(after.cpuMs - before.cpuMs).toBeGreaterThanOrEqual(40);
});

const ticks = (): number => Number(readFileSync('/proc/stat', 'latin1').split('\n')[0]?.split(/\s+/)[8]);

it('the time that the hypervisor gave to others is the eighth number of the CPUs’ line', () => {
  const [before, stolen, after] = [ticks(), stolenMs(), ticks()];
  expect(stolen).toBeGreaterThanOrEqual(before * 10);
  expect(stolen).toBeLessThanOrEqual(after * 10);
});
