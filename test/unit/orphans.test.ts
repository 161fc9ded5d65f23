/** What is left of a job without a guardian: real processes, found by their parent or by the job's id. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { childrenNow, hasJobId, killOrphans } from '../../worker/agent/orphans.ts';
import { compile } from '../rig/compile.ts';
import { processEntry } from '../rig/processes.ts';
import { until } from '../rig/until.ts';

/** Writes a line when it runs, and then sleeps. */
async function sleeper(jobId: string | null, { argv0 = 'sh', seconds = '30' } = {}): Promise<ChildProcess> {
  const env = jobId === null ? {} : { NCCLRUN_JOB_ID: jobId };
  const script = `echo; exec sleep ${seconds}`;
  const child = spawn('/bin/sh', ['-c', script], { argv0, env, stdio: ['ignore', 'pipe', 'ignore'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  return child;
}

/** Children of all threads: other tests of this process may still have some that the addon started. */
function allChildren(): ReadonlySet<number> {
  const threads = readdirSync('/proc/self/task');
  const lists = threads.map((thread) => readFileSync(`/proc/self/task/${thread}/children`, 'latin1'));
  return new Set(lists.flatMap((list) => list.split(' ').filter(Boolean).map(Number)));
}

const job = (): string => `test-${crypto.randomUUID()}`;

describe('orphans of a job', () => {
  test('a process has the id of the job that started it, and no other', async () => {
    const jobId = job();
    const script = 'echo; read line'; // while a program is replaced by another one, it has no environment
    const env = { NCCLRUN_JOB_ID: jobId };
    const child = spawn('/bin/sh', ['-c', script], { env, stdio: ['pipe', 'pipe', 'ignore'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    await once(child.stdout, 'data');
    const { pid = -1 } = child;
    expect([hasJobId(pid, jobId), hasJobId(pid, jobId.slice(0, -1)), hasJobId(pid, job())]).toEqual([
      true,
      false,
      false,
    ]);
    expect(hasJobId(2 ** 30, jobId)).toBe(false);
  });

  test('children that were there before stay, and those that came since are killed', async () => {
    const before = await sleeper(null);
    expect(childrenNow('/guardian').has(before.pid ?? -1)).toBe(true);
    const keep = allChildren();
    const since = await sleeper(null);
    const ended = once(since, 'exit');
    expect(await killOrphans(job(), keep, '/guardian')).toEqual({ killed: 1, survivors: [] });
    expect(await ended).toEqual([null, 'SIGKILL']);
    expect(before.exitCode ?? before.signalCode).toBeNull();
  });

  test('what descends from an orphan is killed with it', async () => {
    const keep = allChildren();
    const child = spawn('/bin/sh', ['-c', 'sleep 30 & echo $!; wait'], { stdio: ['ignore', 'pipe', 'ignore'] });
    await once(child.stdout, 'data');
    const ended = once(child, 'exit');
    const { killed } = await killOrphans(job(), keep, '/guardian');
    expect(killed).toBe(2);
    await ended;
  });

  test('a process of the job elsewhere in the tree is found by its environment', async () => {
    const jobId = job();
    const env = { NCCLRUN_JOB_ID: jobId };
    const child = spawn('/bin/sh', ['-c', 'sleep 30 & echo $!; wait'], { env, stdio: ['ignore', 'pipe', 'ignore'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    await once(child.stdout, 'data');
    const ended = once(child, 'exit');
    expect((await killOrphans(jobId, allChildren(), '/guardian')).killed).toBe(1); // the shell is kept as our child
    await ended;
  });

  test('nothing is killed where nothing is left', async () => {
    expect(await killOrphans(job(), allChildren(), '/guardian')).toEqual({ killed: 0, survivors: [] });
  });

  test('a guardian without its warden has a moment to end by itself', async () => {
    const keep = allChildren();
    const guardian = spawn('/bin/sleep', ['0.3'], { argv0: '/guardian', stdio: 'ignore' });
    const ended = once(guardian, 'exit');
    await once(guardian, 'spawn');
    expect((await killOrphans(job(), keep, '/guardian')).survivors).toEqual([]);
    expect(await ended).toEqual([0, null]);
  });

  test('a stopped guardian that was orphaned before the ranks start is killed like a later one', async () => {
    const others = allChildren();
    const guardian = spawn('/bin/sleep', ['30'], { argv0: '/guardian', stdio: 'ignore' });
    const ended = once(guardian, 'exit');
    await once(guardian, 'spawn');
    await until('the guardian runs', () => processEntry(guardian.pid ?? -1)?.argv[0] === '/guardian');
    guardian.kill('SIGSTOP');
    const keep = new Set([...others, ...childrenNow('/guardian')]);
    expect(await killOrphans(job(), keep, '/guardian')).toEqual({ killed: 1, survivors: [] });
    expect(await ended).toEqual([null, 'SIGKILL']);
  });

  test('a process whose first thread has ended is killed, also if one other thread is left', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'ncclrun-orphans-'));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    const jobId = job();
    const linger = await compile('test/rig/programs/linger.c', directory);
    const env = { NCCLRUN_JOB_ID: jobId };
    const child = spawn(linger, ['thread', join(directory, 'pid')], { env, stdio: 'ignore' });
    await once(child, 'exit');
    const file = join(directory, 'pid');
    await until('the process is so far', () => existsSync(file) && readFileSync(file, 'latin1') !== '');
    const pid = Number(readFileSync(file, 'latin1'));
    await until('its first thread has ended', () => processEntry(pid)?.state === 'Z');
    expect(hasJobId(pid, jobId)).toBe(true);
    expect(await killOrphans(jobId, allChildren(), '/guardian')).toEqual({ killed: 1, survivors: [] });
    expect(hasJobId(pid, jobId)).toBe(false);
  });

  test('eight of the processes that nothing ends are named, each with its state and the reason', async () => {
    const jobId = job();
    const keep = allChildren();
    await Promise.all(Array.from({ length: 9 }, () => sleeper(jobId)));
    vi.spyOn(process, 'kill').mockReturnValue(true);
    onTestFinished(() => void vi.restoreAllMocks());
    let seconds = 0;
    vi.spyOn(process, 'hrtime').mockImplementation(() => [(seconds += 2), 0]);
    const { killed, survivors } = await killOrphans(jobId, keep, '/guardian');
    expect([killed, survivors.length]).toEqual([0, 8]);
    for (const sentence of survivors)
      expect(sentence).toMatch(
        /^could not end process \d+ \(sleep, (?:root|user id \d+), state \w\): SIGKILL is pending/,
      );
  });
});
