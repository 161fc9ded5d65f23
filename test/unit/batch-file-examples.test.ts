/** Files of ncclrun batch that users begin with, and what editors know of such files. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { expect, it } from 'vitest';
import { decidedByBatch, remedyForOption } from '../../launcher/batch/file/own-options.ts';
import { taskOf } from '../../launcher/batch/file/task.ts';
import { runCommandLine } from '../../launcher/cli/options.ts';
import { findByFlag } from '../../launcher/model/flags.ts';
import { batchJsonSchema } from '../../scripts/batch-schema.ts';
import { readText } from '../rig/batch-files.ts';

const root = join(import.meta.dirname, '../..');
const folder = join(root, 'examples/batch');

it.each<[string, string[], number]>([
  ['nightly.yaml', ['one', 'two', 'four', 'table'], 4],
  ['pipeline.yaml', ['train', 'evaluate', 'export', 'report-failure'], 4],
  ['sweep.yaml', ['try', 'best'], 9],
])('the example %s is read', (file, names, count) => {
  const batch = readText(readFileSync(join(folder, file)));
  expect(batch.jobs.map(({ name }) => name)).toEqual(names);
  const tasks = batch.jobs.flatMap((job) => (job.array?.tasks ?? [null]).map((task) => taskOf(batch, job, task)));
  expect(tasks).toHaveLength(count);
  expect(JSON.stringify(tasks)).not.toContain('${{');
  expect(file).toBe(`${batch.name}.yaml`);
});

it('every example of a batch is read by a test', () => {
  expect(readdirSync(folder).toSorted()).toEqual(['nightly.yaml', 'pipeline.yaml', 'sweep.yaml']);
});

it('the JSON schema is up to date', () => {
  expect(readFileSync(join(root, 'docs/batch.schema.json'), 'utf8')).toBe(batchJsonSchema());
});

const properties = v.looseObject({ properties: v.record(v.string(), v.unknown()) });
const published = v.object({ properties: v.looseObject({ jobs: v.looseObject({ items: properties }) }) });

it('the JSON schema has the other words of a key too', () => {
  const schema = v.parse(published, JSON.parse(batchJsonSchema()));
  const keys = Object.keys(schema.properties.jobs.items.properties);
  expect(keys).toEqual(expect.arrayContaining(['time_limit', 'time-limit', 'max-duration', 'job-name', 'dependency']));
});

/** Options of ncclrun by which a job could undo what the batch decides. */
const undoing = [
  'host',
  'hostfile',
  'include',
  'exclude',
  'np',
  'npernode',
  'oversubscribe',
  'export',
  'wdir',
  'timeout',
  'output',
  'output-filename',
  'report',
  'stdin',
  'live',
  'resource-manager',
  'simulate-hosts',
  'explain',
  'dry-run',
  'version',
  'help',
];

it('every flag of an option that the batch decides is refused', () => {
  const flags = runCommandLine.options.filter(({ name }) => undoing.includes(name)).flatMap(({ flags: all }) => all);
  expect(flags.length).toBeGreaterThan(20);
  expect(flags.filter((flag) => remedyForOption(flag) === null)).toEqual([]);
});

it('no other option of ncclrun is refused', () => {
  const others = runCommandLine.options.filter(({ name }) => !undoing.includes(name)).flatMap(({ flags }) => flags);
  expect(others.filter((flag) => remedyForOption(flag) !== null)).toEqual([]);
  const known = decidedByBatch.flatMap(({ flags }) => flags);
  expect(known.filter((flag) => findByFlag(flag, runCommandLine) === null)).toEqual([]);
});
