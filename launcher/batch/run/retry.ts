/** What follows the end of an attempt: another one, or the end of the task. */
import type { AttemptEnd } from '../attempt/records.ts';
import type { RetryPolicy } from '../model/spec.ts';
import type { Task, TaskChange } from '../model/task.ts';

const LONGEST_DELAY_SECONDS = 600;
/** Where it is not known which slots to leave alone. */
const BUSY_MS = 30_000;
/** A task during which hosts died so often is taken for their cause. */
const MAX_HOST_DEATHS = 3;

/** `end` null: its launcher was lost, and nobody knows how far it came. `spread`: 0 to 1, which keeps retries of many tasks apart. */
export function afterAttempt(
  task: Task,
  policy: RetryPolicy,
  end: AttemptEnd | null,
  now: number,
  spread: number,
): TaskChange {
  const over = { startedAt: task.startedAt, endedAt: now, exitCode: end?.exitCode ?? null };
  const message = end?.sentence ?? 'its launcher was lost';
  if (end?.outcome === 'success') return { ...over, state: 'succeeded', message: '' };
  if (task.cancelAsked) return { ...over, state: 'cancelled', message: 'cancelled by the user' };
  if (end?.outcome === 'timed-out') return { ...over, state: 'timed-out', message };
  if (end?.outcome === 'busy') {
    const notBefore = end.busySlots.length > 0 ? now : now + BUSY_MS;
    return { ...over, state: 'queued', notBefore, message: `attempt ${task.attempt} did not start: ${message}` };
  }
  const isInterruption = end === null || end.outcome === 'interruption';
  const counts = {
    errors: task.errors + (isInterruption ? 0 : 1),
    interruptions: task.interruptions + (isInterruption ? 1 : 0),
    hostDeaths: task.hostDeaths + (end?.badHosts.some(({ lost }) => lost) === true ? 1 : 0),
  };
  const failed = { ...over, ...counts, state: isInterruption ? 'lost' : 'failed' } as const;
  if (counts.hostDeaths >= MAX_HOST_DEATHS)
    return { ...failed, message: `hosts died in ${counts.hostDeaths} of its attempts: ${message}` };
  if (!mayRetry(policy, end, counts)) return { ...failed, message };
  const delay = Math.min(LONGEST_DELAY_SECONDS, policy.delaySeconds * 2 ** (counts.errors + counts.interruptions - 1));
  return {
    ...over,
    ...counts,
    state: 'queued',
    notBefore: now + Math.round(delay * (1 + spread / 4) * 1000),
    message: `attempt ${task.attempt} failed: ${message}`,
  };
}

/** `counts`: with the attempt that has just ended. */
export function mayRetry(
  policy: RetryPolicy,
  end: AttemptEnd | null,
  { errors, interruptions }: { readonly errors: number; readonly interruptions: number },
): boolean {
  if (end === null || end.outcome === 'interruption') return interruptions <= policy.interruptions;
  if (end.outcome === 'refused' || policy.unlessExit.includes(end.exitCode)) return false;
  if (end.outOfMemory && !policy.onOutOfMemory) return false;
  return errors <= policy.errors;
}
