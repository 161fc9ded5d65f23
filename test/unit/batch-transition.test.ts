/** What follows from the end of a task: who may run, who never will, what else is to end. */
import { describe, expect, it } from 'vitest';
import { Transitions } from '../../launcher/batch/run/transition.ts';
import type { BatchSpec } from '../../launcher/batch/model/spec.ts';
import type { EndedState, TaskState } from '../../launcher/batch/model/states.ts';
import type { TaskEdit } from '../../launcher/batch/model/task.ts';
import { after, arrayOf, batchSpec, jobSpec } from '../rig/batch-spec.ts';
import { newTasks } from '../../launcher/batch/model/new-tasks.ts';

/** A batch whose tasks a test ends by hand. */
function played(spec: BatchSpec) {
  const tasks = newTasks(spec, 0);
  const at = (id: number) => {
    const task = tasks[id];
    if (task === undefined) throw new Error(`no task ${id}`);
    return task;
  };
  const transitions = new Transitions(spec, at);
  let commits = 0;
  const apply = (...edits: readonly TaskEdit[]) =>
    transitions.apply(edits, 9, (all) => {
      commits += 1;
      for (const { id, change } of all) tasks[id] = { ...at(id), ...change };
    });
  return {
    apply,
    end: (id: number, state: EndedState) => apply({ id, change: { state, startedAt: 1, endedAt: 9 } }),
    begin: (id: number) => apply({ id, change: { state: 'running', startedAt: 1 } }),
    states: (): readonly TaskState[] => tasks.map(({ state }) => state),
    messages: () => tasks.map(({ message }) => message),
    standings: () => tasks.map((task) => transitions.dependencies.standingOf(task).standing),
    commits: () => commits,
  };
}

describe('a task that depends on another', () => {
  it.each([
    ['ok', 'succeeded', 'met'],
    ['ok', 'failed', 'skipped'],
    ['ok', 'timed-out', 'skipped'],
    ['ok', 'cancelled', 'skipped'],
    ['ok', 'skipped', 'skipped'],
    ['any', 'succeeded', 'met'],
    ['any', 'failed', 'met'],
    ['notok', 'failed', 'met'],
    ['notok', 'succeeded', 'skipped'],
  ] as const)('whose condition is %s has the standing that follows when that one %s: %s', (condition, state, seen) => {
    const batch = played(batchSpec([jobSpec('a'), jobSpec('b', { dependencies: [after('a', condition)] })]));
    expect(batch.standings()[1]).toBe('open');
    batch.end(0, state);
    expect(seen === 'skipped' ? batch.states()[1] : batch.standings()[1]).toBe(seen);
  });

  it('that only has to start may run once it has', () => {
    const batch = played(batchSpec([jobSpec('a'), jobSpec('b', { dependencies: [after('a', 'start')] })]));
    batch.begin(0);
    expect(batch.standings()[1]).toBe('met');
  });

  it('that never started is skipped where that one was cancelled before its start', () => {
    const batch = played(batchSpec([jobSpec('a'), jobSpec('b', { dependencies: [after('a', 'start')] })]));
    batch.apply({ id: 0, change: { state: 'cancelled' } });
    expect([batch.states()[1], batch.messages()[1]]).toEqual(['skipped', 'a never started']);
  });

  it('waits for all tasks of an array, and is skipped with the first that fails', () => {
    const spec = batchSpec([jobSpec('a', { array: arrayOf(3) }), jobSpec('b', { dependencies: [after('a')] })]);
    const good = played(spec);
    good.end(0, 'succeeded');
    good.end(2, 'succeeded');
    expect(good.standings()[3]).toBe('open');
    expect(good.end(1, 'succeeded').perhapsReady).toEqual([3]);
    expect(good.standings()[3]).toBe('met');
    const bad = played(spec);
    bad.end(1, 'failed');
    expect(bad.states()).toEqual(['queued', 'failed', 'queued', 'skipped']);
  });

  it('goes task by task where two arrays are tied so', () => {
    const each = [after('a', 'ok', true)];
    const batch = played(
      batchSpec([jobSpec('a', { array: arrayOf(2) }), jobSpec('b', { array: arrayOf(2), dependencies: each })]),
    );
    batch.end(1, 'succeeded');
    expect(batch.standings().slice(2)).toEqual(['open', 'met']);
    batch.end(0, 'failed');
    expect(batch.states()).toEqual(['failed', 'succeeded', 'skipped', 'queued']);
  });

  it('is skipped with all that depend on it in the same commit', () => {
    const chain = ['b', 'c', 'd'].map((name, index) =>
      jobSpec(name, { dependencies: [after(['a', 'b', 'c'][index] ?? '')] }),
    );
    const batch = played(batchSpec([jobSpec('a'), ...chain]));
    const { skipped } = batch.end(0, 'failed');
    expect(batch.states()).toEqual(['failed', 'skipped', 'skipped', 'skipped']);
    expect({ skipped, commits: batch.commits() }).toEqual({ skipped: [1, 2, 3], commits: 1 });
    expect(batch.messages()).toEqual(['', 'a did not succeed', 'b did not succeed', 'c did not succeed']);
  });
});

describe('a failure', () => {
  const jobs = [jobSpec('a'), jobSpec('b'), jobSpec('c')];

  it('leaves the others alone where the batch continues', () => {
    const batch = played(batchSpec(jobs));
    expect(batch.end(0, 'failed')).toEqual({ skipped: [], perhapsReady: [], toCancel: [] });
    expect(batch.states()).toEqual(['failed', 'queued', 'queued']);
  });

  it('skips what waits, and lets run what runs, where the batch is to finish', () => {
    const batch = played(batchSpec(jobs, { onFailure: 'finish' }));
    batch.begin(1);
    expect(batch.end(0, 'lost')).toEqual({ skipped: [2], perhapsReady: [], toCancel: [] });
    expect(batch.states()).toEqual(['lost', 'running', 'skipped']);
    expect(batch.messages()[2]).toBe('a failed');
  });

  it('ends what runs, too, where the batch is to stop', () => {
    const batch = played(batchSpec(jobs, { onFailure: 'stop' }));
    batch.begin(1);
    expect(batch.end(0, 'timed-out').toCancel).toEqual([1]);
  });

  it('is none of the batch when the user has cancelled a task', () => {
    const batch = played(batchSpec(jobs, { onFailure: 'stop' }));
    batch.begin(1);
    expect(batch.end(0, 'cancelled').toCancel).toEqual([]);
    expect(batch.states()[2]).toBe('queued');
  });

  it('skips the rest of an array that has had as many as it may have', () => {
    const batch = played(batchSpec([jobSpec('a', { array: arrayOf(5, null, 2) }), jobSpec('b')]));
    batch.begin(4);
    batch.end(0, 'failed');
    expect(batch.states()).toEqual(['failed', 'queued', 'queued', 'queued', 'running', 'queued']);
    batch.end(1, 'failed');
    expect(batch.states()).toEqual(['failed', 'failed', 'skipped', 'skipped', 'running', 'queued']);
    expect(batch.messages()[2]).toBe('2 tasks of a failed');
  });

  it('counts no more once its task is queued again', () => {
    const batch = played(batchSpec([jobSpec('a', { array: arrayOf(4, null, 2) })]));
    batch.end(0, 'failed');
    batch.apply({ id: 0, change: { state: 'queued', endedAt: null } });
    batch.end(1, 'failed');
    expect(batch.states()).toEqual(['queued', 'failed', 'queued', 'queued']);
  });
});

it('a large array that ends task by task makes another one ready as a whole', () => {
  const count = 20_000;
  const batch = played(
    batchSpec([
      jobSpec('a', { array: arrayOf(count) }),
      jobSpec('b', { array: arrayOf(count), dependencies: [after('a')] }),
    ]),
  );
  for (let id = 0; id < count - 1; id += 1) batch.end(id, 'succeeded');
  expect(batch.end(count - 1, 'succeeded').perhapsReady).toHaveLength(count);
  expect(
    batch
      .standings()
      .slice(count)
      .every((standing) => standing === 'met'),
  ).toBe(true);
});
