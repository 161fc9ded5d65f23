/** A task after a look at Slurm: its records say more of an attempt's end than Slurm does, and Slurm says whether that was the last one. */
import type { AttemptEnd } from '../../attempt/records.ts';
import type { EndedState } from '../../model/states.ts';
import type { Task, TaskChange } from '../../model/task.ts';
import type { EndSighting, Sighting } from './sighting.ts';

export interface Look {
  readonly sighting: Sighting;
  /** Attempts before Slurm got the task. */
  readonly before: number;
  /** Of the latest attempt; null: it left no record. */
  readonly end: AttemptEnd | null;
  /** Its launcher has begun. */
  readonly hasBegun: boolean;
  readonly now: number;
}

/** Null: nothing has changed. */
export function changeAfter(task: Task, look: Look): TaskChange | null {
  const change = changeOf(task, look);
  const before: Readonly<Record<string, unknown>> = { ...task };
  return Object.entries(change).some(([key, value]) => before[key] !== value) ? change : null;
}

function changeOf(task: Task, look: Look): TaskChange {
  const { sighting, before, end, now } = look;
  switch (sighting.kind) {
    case 'waiting': {
      const message = sighting.restarts === 0 ? '' : `attempt ${before + sighting.restarts} ${failureOf(end)}`;
      const attempt = sighting.restarts === 0 ? task.attempt : Math.max(task.attempt, before + sighting.restarts);
      return { state: sighting.held ? 'held' : 'queued', attempt, message };
    }
    case 'running': {
      const startedAt = task.state === 'running' ? task.startedAt : (sighting.startedAt ?? now);
      return { state: 'running', attempt: before + sighting.restarts + 1, startedAt, message: '' };
    }
    case 'ended':
      return changeAtEnd(task, sighting, look);
    default:
      return sighting satisfies never;
  }
}

function changeAtEnd(task: Task, seen: EndSighting, { before, end, hasBegun, now }: Look): TaskChange {
  const { state, message } = endOf(task, seen, end, hasBegun);
  const hasRun = seen.how !== 'cancelled' || seen.startedAt !== null || end !== null;
  const attempts = hasRun ? before + (seen.restarts ?? 0) + 1 : task.attempt;
  return {
    state,
    message,
    attempt: Math.max(task.attempt, attempts),
    exitCode: exitCodeOf(state, seen, end),
    startedAt: task.startedAt ?? seen.startedAt,
    endedAt: end?.endedAt ?? seen.endedAt ?? now,
  };
}

interface End {
  readonly state: EndedState;
  readonly message: string;
}

function endOf(task: Task, { how, state }: EndSighting, end: AttemptEnd | null, hasBegun: boolean): End {
  const told = end?.sentence ?? '';
  switch (how) {
    case 'succeeded':
      return { state: 'succeeded', message: '' };
    case 'cancelled':
      return { state: 'cancelled', message: task.cancelAsked ? 'cancelled by the user' : 'cancelled in Slurm' };
    case 'timed-out':
      return { state: 'timed-out', message: end?.outcome === 'timed-out' ? told : `Slurm ended it: ${state}` };
    case 'out-of-memory':
      return { state: 'failed', message: told === '' ? 'it ran out of memory' : told };
    case 'lost':
      return { state: 'lost', message: `Slurm ended it: ${state}` };
    case 'failed':
      return endOfFailed(task, told, end, hasBegun);
    default:
      return how satisfies never;
  }
}

function endOfFailed(task: Task, told: string, end: AttemptEnd | null, hasBegun: boolean): End {
  if (task.cancelAsked) return { state: 'cancelled', message: 'cancelled by the user' };
  if (end === null)
    return hasBegun
      ? { state: 'lost', message: 'its launcher was lost' }
      : { state: 'failed', message: 'its batch script failed before it became ncclrun; .ncclrun has what it printed' };
  switch (end.outcome) {
    case 'timed-out':
      return { state: 'timed-out', message: told };
    case 'interruption':
      return { state: 'lost', message: told };
    case 'success':
    case 'error':
    case 'refused':
    case 'busy': // by an option of the job: in its allocation a GPU is its own
      return { state: 'failed', message: told };
    default:
      return end.outcome satisfies never;
  }
}

function exitCodeOf(state: EndedState, { exitCode }: EndSighting, end: AttemptEnd | null): number | null {
  if (state === 'succeeded') return 0;
  return end?.exitCode ?? exitCode;
}

function failureOf(end: AttemptEnd | null): string {
  if (end === null) return 'was interrupted';
  return end.sentence === '' ? 'failed' : `failed: ${end.sentence}`;
}
