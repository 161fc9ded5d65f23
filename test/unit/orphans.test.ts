/** What is left of a job without a guardian: real processes, found by their parent or by the job's id. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { childrenNow, hasJobId, killOrphans } from '../../worker/agent/orphans.ts';

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
    expect(childrenNow().has(before.pid ?? -1)).toBe(true);
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
});
