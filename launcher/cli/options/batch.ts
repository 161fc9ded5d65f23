/** Options of the commands that deal with batches. */
import type { Option } from '../../model/option.ts';
import { helpOption, jsonOption } from './commands.ts';

function textOption<Name extends string>(name: Name, flags: readonly string[], argument: string, help: string) {
  const kind = { type: 'text' } as const;
  return { name, flags, environment: [], kind, argument, group: 'command', help, default: null } as const;
}

export const batchOptions = [
  {
    name: 'check',
    flags: ['--check'],
    environment: [],
    kind: { type: 'flag' },
    argument: '',
    group: 'command',
    help: 'check the file, and start nothing',
    default: null,
  },
  {
    name: 'schedule',
    flags: ['--dry-run', '--schedule'],
    environment: [],
    kind: { type: 'flag' },
    argument: '',
    group: 'command',
    help: 'print which task would run where and when, or what sbatch gets',
    default: null,
  },
  {
    name: 'batch-id',
    flags: ['--id'],
    environment: [],
    kind: { type: 'text' },
    argument: 'NAME',
    group: 'command',
    help: 'what the batch is called (default: its name and a number)',
    default: null,
  },
  {
    name: 'resume',
    flags: ['--resume'],
    environment: [],
    kind: { type: 'text' },
    argument: 'ID',
    group: 'command',
    help: 'go on with a batch whose scheduler has ended',
    default: null,
  },
  {
    name: 'via',
    flags: ['--via'],
    environment: [],
    kind: { type: 'choice', choices: ['slurm'] },
    argument: 'SCHEDULER',
    group: 'command',
    help: 'who schedules the jobs: slurm (default: ncclrun)',
    default: null,
  },
  {
    name: 'detach',
    flags: ['--detach'],
    environment: [],
    kind: { type: 'flag' },
    argument: '',
    group: 'command',
    help: 'with --via slurm: return once all is submitted',
    default: null,
  },
  {
    name: 'batch-json',
    flags: ['--json'],
    environment: [],
    kind: { type: 'flag' },
    argument: '',
    group: 'command',
    help: 'print what became of it as one JSON object',
    default: null,
  },
] as const satisfies readonly Option[];

export const jobsOptions = [
  helpOption,
  {
    name: 'failed',
    flags: ['--failed'],
    environment: [],
    kind: { type: 'flag' },
    argument: '',
    group: 'command',
    help: 'show only tasks that failed, were lost or ran into their time limit',
    default: null,
  },
  {
    name: 'watch',
    flags: ['--watch'],
    environment: [],
    kind: { type: 'flag' },
    argument: '',
    group: 'command',
    help: 'show it again each second until the batch ends',
    default: null,
  },
  jsonOption,
] as const satisfies readonly Option[];

export const submitOptions = [
  helpOption,
  ...(
    [
      ['submit-to', '--to', 'BATCH', 'the batch that gets the job (default: the only one that runs)'],
      ['submit-name', '--name', 'NAME', 'what the job is called (default: its program and a number)'],
      ['submit-after', '--after', 'JOBS', 'jobs that must have succeeded before, with commas between them'],
      ['submit-time', '--time-limit', 'TIME', 'how long it may run, such as 30m'],
      ['submit-priority', '--priority', 'N', '0 to 100, the larger first (default: 50)'],
      ['submit-output', '--output', 'PATTERN', 'file of its output, such as logs/%x.%r.out'],
    ] as const
  ).map(([name, flag, argument, help]) => textOption(name, [flag], argument, help)),
  textOption('submit-ranks', ['-n', '--ntasks'], 'N', 'how many ranks (default: 1)'),
] as const satisfies readonly Option[];

export const releaseOptions = [
  helpOption,
  {
    name: 'released-host',
    flags: ['--host'],
    environment: [],
    kind: { type: 'text' },
    argument: 'HOST',
    group: 'command',
    help: 'give tasks to this host again, which had been taken out',
    default: null,
  },
] as const satisfies readonly Option[];
