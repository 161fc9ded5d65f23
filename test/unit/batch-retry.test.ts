/** What follows the end of an attempt. */
import { describe, expect, it } from 'vitest';
import type { AttemptEnd } from '../../launcher/batch/attempt/records.ts';
import type { RetryPolicy } from '../../launcher/batch/model/spec.ts';
import { afterAttempt } from '../../launcher/batch/run/retry.ts';
import { BadHosts } from '../../launcher/batch/run/bad-hosts.ts';
import { batchSpec, jobSpec } from '../rig/batch-spec.ts';
import { newTasks } from '../../launcher/batch/model/new-tasks.ts';

const [first] = newTasks(batchSpec([jobSpec('a')]), 0);
if (first === undefined) throw new Error('a batch of one job has a task');
const task = { ...first, state: 'running', attempt: 1, startedAt: 5 } as const;
const policy: RetryPolicy = { errors: 2, interruptions: 1, unlessExit: [2], delaySeconds: 30, onOutOfMemory: false };
const end = (changes: Partial<AttemptEnd>): AttemptEnd => ({
  schemaVersion: 1,
  outcome: 'error',
  exitCode: 1,
  reason: 'rank-exit',
  outOfMemory: false,
  sentence: 'rank 0 exited with status 1',
  badHosts: [],
  busySlots: [],
  endedAt: 90,
  ...changes,
});

describe('an attempt', () => {
  it.each([
    ['that succeeds ends its task', end({ outcome: 'success', exitCode: 0 }), {}, 'succeeded'],
    ['that fails is followed by another', end({}), {}, 'queued'],
    ['that fails once more than it may ends its task', end({}), { errors: 2 }, 'failed'],
    ['that exits with a status that is not retried ends its task', end({ exitCode: 2 }), {}, 'failed'],
    ['that can never start so ends its task', end({ outcome: 'refused', exitCode: 127 }), {}, 'failed'],
    ['that runs out of memory ends its task', end({ outOfMemory: true }), {}, 'failed'],
    ['that runs into its time limit ends its task', end({ outcome: 'timed-out', exitCode: 124 }), {}, 'timed-out'],
    ['that is interrupted is followed by another', end({ outcome: 'interruption' }), { errors: 2 }, 'queued'],
    ['that is interrupted too often ends its task', end({ outcome: 'interruption' }), { interruptions: 1 }, 'lost'],
    ['whose launcher is lost is followed by another', null, {}, 'queued'],
    ['whose launcher is lost too often ends its task', null, { interruptions: 1 }, 'lost'],
    ['that fails when the user has cancelled it ends its task', end({}), { cancelAsked: true }, 'cancelled'],
    [
      'that ends well before it is cancelled has succeeded',
      end({ outcome: 'success' }),
      { cancelAsked: true },
      'succeeded',
    ],
    [
      'during which a host dies for the third time ends its task',
      end({ outcome: 'interruption', badHosts: [{ name: 'h1', lost: true }] }),
      { hostDeaths: 2 },
      'lost',
    ],
  ] as const)('%s', (_, how, changes, state) => {
    expect(afterAttempt({ ...task, ...changes }, policy, how, 100, 0).state).toBe(state);
  });

  it('that finds its GPUs busy uses up no retry, and waits only where nobody knows which slots to leave alone', () => {
    const busy = end({ outcome: 'busy', sentence: 'h1: GPU 0 is held by job 1a of alice' });
    const known = { ...busy, busySlots: [{ host: 'h1', slot: 0 }] };
    const message = 'attempt 1 did not start: h1: GPU 0 is held by job 1a of alice';
    expect([busy, known].map((one) => afterAttempt(task, policy, one, 1000, 0))).toMatchObject([
      { state: 'queued', notBefore: 31_000, message },
      { state: 'queued', notBefore: 1000, message },
    ]);
    expect(afterAttempt(task, policy, known, 1000, 0)).not.toHaveProperty('errors');
  });

  it('is followed by another after a delay that doubles up to ten minutes', () => {
    const delays = [0, 1, 2, 8].map((errors) => {
      const many = { ...policy, errors: 100 };
      return Number(afterAttempt({ ...task, errors }, many, end({}), 1000, 0).notBefore) - 1000;
    });
    expect(delays).toEqual([30_000, 60_000, 120_000, 600_000]);
    expect(afterAttempt(task, policy, end({}), 1000, 1).notBefore).toBe(1000 + 37_500);
  });

  it('uses up the budget of what ended it alone', () => {
    expect(afterAttempt(task, policy, end({}), 100, 0)).toMatchObject({ errors: 1, interruptions: 0 });
    expect(afterAttempt(task, policy, null, 100, 0)).toMatchObject({ errors: 0, interruptions: 1 });
  });
});

const failed = (job: number, changes = {}) => ({
  job,
  hosts: ['h1'],
  lost: [],
  failed: true,
  lastedMs: 1000,
  ...changes,
});

describe('a host', () => {
  it('gets no tasks for 15 minutes when two jobs fail there soon after their start, then for twice as long', () => {
    const bad = new BadHosts([]);
    expect(bad.afterEnd(failed(0), 0)).toEqual([]);
    expect(bad.afterEnd(failed(0), 0)).toEqual([]);
    expect(bad.afterEnd(failed(1), 0)).toMatchObject([{ name: 'h1', quarantined_until: 900_000, quarantines: 1 }]);
    bad.afterEnd(failed(0), 0);
    expect(bad.afterEnd(failed(1), 0)).toMatchObject([{ quarantined_until: 1_800_000, quarantines: 2 }]);
  });

  it('is no suspect for a task that lasted, that had other hosts too, or where another one then succeeds', () => {
    const bad = new BadHosts([]);
    bad.afterEnd(failed(0), 0);
    expect(bad.afterEnd(failed(1, { lastedMs: 60_000 }), 0)).toEqual([]);
    expect(bad.afterEnd(failed(1, { hosts: ['h1', 'h2'] }), 0)).toEqual([]);
    bad.afterEnd(failed(2, { failed: false }), 0);
    expect(bad.afterEnd(failed(1), 0)).toEqual([]);
  });

  it('gets no tasks for a minute once it was lost, for longer after another time, or until the user releases it', () => {
    const bad = new BadHosts([]);
    const lost = failed(0, { hosts: ['h1', 'h2'], lost: ['h2'], failed: false });
    expect(bad.afterEnd(lost, 0)).toMatchObject([{ name: 'h2', quarantined_until: 60_000, reason: 'it was lost' }]);
    expect(bad.afterEnd(lost, 0)).toMatchObject([
      { name: 'h2', quarantined_until: 900_000, reason: 'it was lost 2 times' },
    ]);
    expect(bad.release('h2')).toMatchObject({ quarantined_until: 0 });
    expect(bad.release('h1')).toBeNull();
  });
});
