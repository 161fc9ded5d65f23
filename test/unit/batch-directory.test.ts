/** Where batches are kept. */
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { repository } from '../rig/cluster.ts';
import {
  batchIds,
  existingRoot,
  foundBatch,
  newBatchDirectory,
  stateRoot,
} from '../../launcher/batch/state/directory.ts';

let home = '';
const environment = () => ({ XDG_STATE_HOME: home });
beforeEach(() => {
  home = mkdtempSync(join(repository, 'build/test-state-'));
});
afterEach(() => rmSync(home, { recursive: true }));

it('the place of batches is made for its user alone', () => {
  const { path } = stateRoot(environment());
  expect(path).toBe(join(home, 'ncclrun/batch'));
  expect(statSync(path).mode & 0o777).toBe(0o700);
});

it('nothing is made where batches are only looked for', () => {
  const path = join(home, 'other');
  expect(batchIds(existingRoot({ XDG_STATE_HOME: path }))).toEqual(batchIds(existingRoot({ XDG_STATE_HOME: path })));
  expect(existsSync(path)).toBe(false);
});

it('a place that others can write to is refused, whether it is made or looked for', () => {
  mkdirSync(join(home, 'ncclrun/batch'), { recursive: true });
  chmodSync(join(home, 'ncclrun/batch'), 0o777);
  for (const root of [stateRoot, existingRoot]) expect(() => root(environment())).toThrow('batches cannot be kept in');
});

it('a batch is called after its file, with the next free number, or as the user says, once', () => {
  const { path } = stateRoot(environment());
  expect([1, 2].map(() => newBatchDirectory(path, 'sweep', null).id)).toEqual(['sweep-1', 'sweep-2']);
  rmSync(join(path, 'sweep-1'), { recursive: true });
  expect(newBatchDirectory(path, 'sweep', null).id).toBe('sweep-3');
  expect(newBatchDirectory(path, 'sweep', 'mine').id).toBe('mine');
  expect(() => newBatchDirectory(path, 'sweep', 'mine')).toThrow('there is a batch mine already');
  for (const id of ['../x', 'a/b', '', '.', '-x', 'a b'])
    expect(() => newBatchDirectory(path, 'sweep', id)).toThrow('cannot be the name of a batch');
  expect(batchIds(path)).toEqual(['mine', 'sweep-2', 'sweep-3']);
  expect(() => foundBatch(path, 'sweeb-3')).toThrow('there is no batch "sweeb-3"');
  expect(foundBatch(path, 'mine').database).toBe(join(path, 'mine/batch.db'));
});
