/** What a batch keeps on the disk. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AttemptRecords } from '../../launcher/batch/attempt/records.ts';
import { isAlive, ownIdentity } from '../../launcher/batch/attempt/process-identity.ts';
import { openDatabase } from '../../launcher/batch/store/open.ts';
import { Store } from '../../launcher/batch/store/store.ts';
import { arrayOf, batchSpec, jobSpec } from '../rig/batch-spec.ts';

let directory = '';
let path = '';
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'ncclrun-store-'));
  path = join(directory, 'batch.db');
});
afterEach(() => rmSync(directory, { recursive: true }));

function opened(): Store {
  const database = openDatabase(path, true);
  if (database === null) throw new Error('somebody has the database');
  return new Store(database);
}

const spec = batchSpec([jobSpec('a'), jobSpec('b', { array: arrayOf(3), held: true })]);
const placement = [{ host: 'h1', ranks: 1, slots: [2], cpus: 1, memoryBytes: 0, exclusive: false }];

function submitted(): Store {
  const store = opened();
  store.submit({ id: 'test-1', file: 'batch.yaml', spec, createdAt: 5 });
  return store;
}

describe('the store', () => {
  it('has the tasks of the submitted batch, also when it is opened again', () => {
    const store = submitted();
    const { tasks } = store;
    expect(tasks.map(({ job, position, state }) => [job, position, state])).toEqual([
      [0, 0, 'queued'],
      [1, 0, 'held'],
      [1, 1, 'held'],
      [1, 2, 'held'],
    ]);
    store.close();
    const again = opened();
    expect(again.tasks).toEqual(tasks);
    expect({ spec: again.spec, batch: again.batch }).toMatchObject({ spec, batch: { id: 'test-1', generation: 1 } });
    expect(again.resume()).toBe(2);
    again.close();
  });

  it('belongs to one process at a time', () => {
    const store = submitted();
    expect(openDatabase(path, true)).toBeNull();
    store.close();
    opened().close();
  });

  it('keeps an attempt from its claim to its end', () => {
    const store = submitted();
    store.claim([{ id: 0, placement }], 10);
    expect(store.task(0)).toMatchObject({ state: 'claimed', attempt: 1 });
    store.running(0, ownIdentity(), 20);
    expect(store.task(0)).toMatchObject({ state: 'running', startedAt: 20 });
    expect([store.placementOf(0), store.latestPlacements().get(0)]).toEqual([placement, placement]);
    store.ended(0, { outcome: 'success', exitCode: 0, sentence: '' }, [{ id: 0, change: { state: 'succeeded' } }], 30);
    store.close();
    const again = opened();
    expect(again.task(0)).toMatchObject({ state: 'succeeded', attempt: 1 });
    again.close();
  });

  it('gives the next attempt of a task that nobody started another number', () => {
    const store = submitted();
    store.claim([{ id: 0, placement }], 10);
    store.voided(0, 11);
    expect(store.task(0)).toMatchObject({ state: 'queued', attempt: 1 });
    store.claim([{ id: 0, placement }], 12);
    expect(store.task(0).attempt).toBe(2);
    store.close();
  });

  it('refuses a change of a task that is not what the memory says, and changes nothing', () => {
    const store = submitted();
    store.claim([{ id: 0, placement }], 10);
    const edits = [
      { id: 1, change: { state: 'queued' } },
      { id: 0, change: { attempt: 1 } },
    ] as const;
    expect(() => store.ended(2, null, edits, 10)).toThrow('task 2 has no attempt 0');
    expect(store.task(1).state).toBe('held');
    store.close();
  });

  it('takes one more job into a batch', () => {
    const store = submitted();
    const more = { ...spec, jobs: [...spec.jobs, jobSpec('c')] };
    expect(store.add(more, 99)).toEqual([4]);
    expect(store.task(4)).toMatchObject({ job: 2, position: 0, state: 'queued', queuedAt: 99 });
    store.close();
  });

  it('knows which hosts are out, and that the batch has ended', () => {
    const store = submitted();
    store.quarantine({ name: 'h1', quarantined_until: 90, quarantines: 1, reason: 'it was lost' });
    store.quarantine({ name: 'h1', quarantined_until: 0, quarantines: 1, reason: '' });
    expect(store.hosts).toEqual([{ name: 'h1', quarantined_until: 0, quarantines: 1, reason: '' }]);
    store.endBatch(50);
    store.close();
    const again = opened();
    expect(again.batch?.ended_at).toBe(50);
    again.close();
  });
});

describe('the decision about an attempt', () => {
  it('is that of whoever comes first', () => {
    const records = new AttemptRecords(directory);
    expect(records.decision()).toBeNull();
    expect(records.claimStart()).toBe(true);
    expect(records.claimStart()).toBe(false);
    expect(records.voidUnlessStarted()).toEqual({ decided: 'started', launcher: ownIdentity() });
  });

  it('is void once a scheduler has given the attempt up', () => {
    const records = new AttemptRecords(directory);
    expect(records.voidUnlessStarted()).toEqual({ decided: 'void' });
    expect(records.claimStart()).toBe(false);
  });

  it('names a process that is known from others with its number', () => {
    const own = ownIdentity();
    expect([isAlive(own), isAlive({ ...own, startTime: '1' }), isAlive({ ...own, bootId: 'other' })]).toEqual([
      true,
      false,
      false,
    ]);
  });
});
