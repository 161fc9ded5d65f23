/** `ncclrun batch FILE`: what the file says, checked before anything starts. */
import { basename } from 'node:path';
import type { BatchSpec, JobSpec } from '../model/spec.ts';
import { maximumTasks } from './array-range.ts';
import { checkShape } from './check-shape.ts';
import { commandOf } from './command.ts';
import { decodeBatchFile } from './decode.ts';
import { withDefaults } from './defaults.ts';
import { checkDependencies } from './dependency-graph.ts';
import { withVariables } from './environment.ts';
import { itemOf, mapOf, type Item, type Mapping } from './item.ts';
import { readJob, type Surroundings } from './job.ts';
import { withKnownKeys } from './keys.ts';
import { parseYaml } from './parse-yaml.ts';
import { batchSchema, defaultsSchema } from './schema.ts';
import { isName } from './schema-parts.ts';
import { Source } from './source.ts';

interface BatchFile extends Surroundings {
  /** As the user named it, for messages. */
  readonly path: string;
  readonly content: Uint8Array;
}

/** Variables that defaults give to all jobs together. */
const maximumVariables = 1_000_000;

/** Throws a FailureError (usage) with the place of the first mistake. Starts and looks up nothing. */
export function readBatchFile({ path, content, ...surroundings }: BatchFile): BatchSpec {
  const source = new Source(path, decodeBatchFile(path, content));
  const file = mergedFile(rootOf(source), source);
  const raw = checkShape(batchSchema, file, 'the file', source);
  const list = itemOf(file, 'jobs');
  const maps = list?.type === 'list' ? list.items.filter((item) => item.type === 'map') : [];

  const lines = new Map<string, number>();
  const jobs = raw.jobs.map((job, index) => {
    const map = maps[index] ?? file;
    const name = itemOf(map, 'name') ?? map;
    const former = lines.get(job.name);
    if (former !== undefined) {
      throw source.mistake(
        name,
        `two jobs have the name "${job.name}": the first in line ${former}`,
        'rename one of them',
      );
    }
    lines.set(job.name, source.lineOf(name.start));
    return readJob({ source, map, raw: job }, surroundings);
  });
  checkTasks(
    jobs.map(({ spec }) => spec),
    maps,
    source,
  );
  checkDependencies(
    jobs.map(({ spec: { name, array }, mentions }) => ({ name, array, mentions })),
    source,
  );
  const notify = itemOf(file, 'notify');
  return {
    name: raw.name ?? nameOfFile(path, source),
    jobs: jobs.map(({ spec }) => spec),
    onFailure: raw.on_failure ?? 'continue',
    notify: notify === null ? null : commandOf(notify, source),
  };
}

function rootOf(source: Source): Mapping {
  const root = parseYaml(source);
  if (root.type === 'map') return root;
  const remedy = 'write at least one job: jobs: [{ name: hello, command: hostname }]';
  if (root.type === 'scalar' && root.value === null)
    throw source.mistake({ start: 0, end: 1 }, 'the file has no jobs', remedy);
  const seen = `the file is ${source.shown(root)}`;
  throw source.mistake(root, `${seen}, and no map`, root.type === 'list' ? 'write "jobs:" above the list' : remedy);
}

/** The file with its defaults in every job. */
function mergedFile(root: Mapping, source: Source): Mapping {
  const version = itemOf(root, 'version');
  // Of another version's words most would be unknown.
  if (version !== null && (version.type !== 'scalar' || version.value !== 1)) {
    throw source.mistake(
      version,
      `the version is ${source.shown(version)}`,
      'write version: 1, the one that this ncclrun reads',
    );
  }
  const file = withKnownKeys(root, source);
  const said = mapOf(file, 'defaults');
  if (said !== null) checkShape(defaultsSchema, said, '"defaults"', source);
  const defaults = said === null ? null : withVariables(said, source);
  const entries = file.entries
    .filter(({ key }) => key !== 'defaults' || said === null)
    .map((entry) => (entry.key === 'jobs' ? { ...entry, value: mergedJobs(entry.value, defaults, source) } : entry));
  return { ...file, entries };
}

function mergedJobs(jobs: Item, defaults: Mapping | null, source: Source): Item {
  if (jobs.type !== 'list') return jobs;
  const variables = defaults === null ? 0 : (mapOf(defaults, 'env')?.entries.length ?? 0);
  if (variables * jobs.items.length > maximumVariables) {
    const message = `defaults give ${variables} variables to ${jobs.items.length} jobs`;
    throw source.mistake(jobs, message, 'write variables where they are needed, or one job with an array');
  }
  const items = jobs.items.map((job) =>
    job.type === 'map' ? withDefaults(withVariables(job, source), defaults, source) : job,
  );
  return { ...jobs, items };
}

function checkTasks(jobs: readonly JobSpec[], maps: readonly Mapping[], source: Source): void {
  let count = 0;
  for (const [index, { array }] of jobs.entries()) {
    count += array?.tasks.length ?? 1;
    if (count <= maximumTasks) continue;
    const span = maps[index] === undefined ? null : (itemOf(maps[index], 'array') ?? maps[index]);
    const message = `the jobs up to here have ${count} tasks`;
    throw source.mistake(
      span ?? { start: 0, end: 1 },
      message,
      `a batch has at most ${maximumTasks}: write several batches`,
    );
  }
}

/** The batch's name where the file does not say it. */
function nameOfFile(path: string, source: Source): string {
  const name = basename(path).replace(/\.(?:ya?ml|json)$/u, '');
  if (isName(name)) return name;
  throw source.mistake(
    { start: 0, end: 1 },
    `the batch has no name, and "${name}" of the file is none`,
    'write name: sweep',
  );
}
