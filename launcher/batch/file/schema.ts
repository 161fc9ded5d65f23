/** Keys of a batch file and what they may hold: docs/batch.schema.json and the first check come from here. */
import * as v from 'valibot';
import { demandEntries } from './demand-schema.ts';
import {
  duration,
  key,
  listOf,
  nameText,
  oneOf,
  patternText,
  scalar,
  textOf,
  truth,
  wholeNumber,
} from './schema-parts.ts';

const commandWanted = 'write a text for sh -c, or a list: the program and its arguments';
const command = v.union([textOf(commandWanted), listOf(commandWanted)], commandWanted);

const variablesWanted = 'write a map: { NCCL_DEBUG: INFO }';
const passedWanted = 'write names of variables: [TOKEN]';
const passedNames = patternText(/^[A-Za-z_][A-Za-z0-9_]*$/, passedWanted);

const afterWanted = 'write names of jobs: [prep], { prep: ok }, or in the words of Slurm afterok:prep,afterany:train';
const conditions = [
  'ok',
  'any',
  'notok',
  'start',
  'each',
  'afterok',
  'afterany',
  'afternotok',
  'after',
  'aftercorr',
] as const;

const arrayWanted = 'write a range such as "0-15" or "0-15%4", or a map of words and values: { lr: [0.1, 0.03] }';
const arrayMessage = ({ input }: { readonly input: unknown }) =>
  typeof input === 'number' && Number.isInteger(input) && input > 0
    ? `write "0-${input - 1}" for ${input} tasks, or "${input}-${input}" for the one with the number ${input}`
    : arrayWanted;
const valuesWanted = 'write a list of values, [0.1, 0.03], or a range, 1..8';
const excludeWanted = 'write a list of maps: [{ lr: 0.1, seed: 2 }]';

export const arrayEntries = {
  exclude: v.optional(v.array(v.record(v.string(), scalar('write one value'), excludeWanted), excludeWanted)),
  max_parallel: v.optional(wholeNumber(1, 100_000)),
  max_fails: v.optional(wholeNumber(1, 100_000)),
};

export const retryEntries = {
  on_events: v.optional(v.array(oneOf(['error', 'interruption']), 'write a list: [error, interruption]')),
  max_retries: v.optional(wholeNumber(0, 1000)),
  max_interruptions: v.optional(wholeNumber(0, 1000)),
  unless_exit: v.optional(v.array(wholeNumber(1, 255), 'write a list of exit statuses: [2, 126]')),
  delay: v.optional(duration),
  on_oom: v.optional(oneOf(['stop', 'retry'])),
};

const signalWanted = 'write a signal and seconds: USR1@120';
const slurmWanted = 'write a list of options of sbatch: [--partition=short]';
const optionsWanted = 'write a list of options of ncclrun: [--on-hang, restart]';

/** What defaults may say as well. */
const sharedEntries = {
  command: key(command, 'A text for sh -c, or a list: the program and its arguments'),
  commands: key(listOf('write a list of texts'), 'Texts for sh -c, which && joins'),
  ...demandEntries,
  time_limit: key(duration, 'Time after which the job ends: 90s, 15m, 12h, 2d, 1-12:00:00'),
  working_dir: key(textOf('write a path'), 'Directory in which the job runs'),
  env: key(
    v.union(
      [
        v.record(v.string(), scalar('write one value'), variablesWanted),
        v.array(scalar(variablesWanted), variablesWanted),
        textOf(variablesWanted),
      ],
      variablesWanted,
    ),
    'Environment variables',
  ),
  env_from: key(
    v.union([passedNames, v.array(passedNames, passedWanted)], passedWanted),
    'Names of variables that are passed on when the job starts; their values are not kept',
  ),
  priority: key(wholeNumber(0, 100), 'The larger first; 50 where nothing is said'),
  array: key(
    v.union(
      [
        textOf(arrayWanted),
        v.objectWithRest(
          arrayEntries,
          v.union([listOf(valuesWanted), scalar(valuesWanted)], valuesWanted),
          arrayWanted,
        ),
      ],
      arrayMessage,
    ),
    'Tasks: 0-15%4, or words and their values: { lr: [0.1, 0.03], seed: 1..3 }',
  ),
  after: key(
    v.union(
      [
        textOf(afterWanted),
        v.array(textOf(afterWanted), afterWanted),
        v.record(v.string(), oneOf(conditions), afterWanted),
      ],
      afterWanted,
    ),
    'Jobs that this one waits for: [prep], or { prep: ok }',
  ),
  retry: key(
    v.strictObject(retryEntries, 'write a map: { on_events: [error, interruption], max_retries: 2 }'),
    'When and how often the job runs again',
  ),
  requeue: key(truth, 'False if the job does not run again after an interruption'),
  signal: key(
    patternText(/^[A-Za-z0-9+:-]+(?:@[0-9]{1,7})?$/, signalWanted),
    'Signal ahead of the time limit: USR1@120',
  ),
  hold: key(truth, 'True if the job waits until it is released'),
  output: key(textOf('write the pattern of a file name'), 'File of its output: %x %j %a %A %t %n %N %r %%'),
  options: key(v.array(scalar(optionsWanted), optionsWanted), 'Options of ncclrun'),
  slurm: key(v.array(patternText(/^-/, slurmWanted), slurmWanted), 'Options of sbatch, used with Slurm only'),
};

export const jobEntries = { name: v.pipe(nameText, v.description('Unique name of the job')), ...sharedEntries };

const jobSchema = v.strictObject(jobEntries, 'write a map: { name: prep, command: python3 prep.py }');

export const defaultsSchema = v.strictObject(sharedEntries, 'write a map, such as { time_limit: 4h }');

export const batchEntries = {
  version: key(v.literal(1, 'write version: 1'), 'Version of this format: 1'),
  name: key(nameText, 'Beginning of the batch id; without it the name of the file'),
  defaults: key(defaultsSchema, 'Keys of every job that does not say them itself; env is merged by variable'),
  jobs: v.pipe(
    v.array(jobSchema, 'write a list: each job begins with "- name:"'),
    v.minLength(1, 'write at least one job: - { name: hello, command: hostname }'),
    v.description('Jobs, in the order in which they start where nothing else decides'),
  ),
  on_failure: key(
    oneOf(['continue', 'finish', 'stop']),
    'After a job failed for good: start the others, start none, or end them too',
  ),
  notify: key(command, 'Command that gets the summary as JSON on its standard input'),
};

export const batchSchema = v.strictObject(batchEntries, 'write a map: { jobs: [{ name: hello, command: hostname }] }');

export type RawJob = v.InferOutput<typeof jobSchema>;
