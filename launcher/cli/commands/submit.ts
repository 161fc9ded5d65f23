/** `ncclrun submit -- PROGRAM`: one more job for a batch. */
import { basename } from 'node:path';
import type { BatchDirectory } from '../../batch/state/directory.ts';
import type { BatchStatus } from '../../batch/serve/request.ts';
import { usageError } from '../../model/usage-error.ts';
import { standardStreams } from '../../report/standard-streams.ts';
import { allBatches, askBatch, namedBatch, statusOfBatch } from '../batch/batches.ts';
import { commandTable } from '../command-table.ts';
import { readCommandLine } from '../read-command-line.ts';
import { reportRefusals } from '../report-refusals.ts';
import type { Settings } from '../settings.ts';

const HOW = 'write: ncclrun submit -n 4 -- PROGRAM; see ncclrun help submit';

type SubmitName = 'help' | `submit-${'to' | 'name' | 'after' | 'time' | 'priority' | 'output' | 'ranks'}`;

/** Throws a FailureError (usage) for a job that could not be started: nobody should wait for that. */
export async function submit(argv: readonly string[]): Promise<number> {
  const {
    asked,
    settings,
    files,
    words: program,
  } = readCommandLine<SubmitName>(argv, commandTable.submit.line, process.env);
  if (asked === 'help') return (await import('./help.ts')).help('submit');
  await reportRefusals(files);
  if (program.length === 0) throw usageError('no program to run', HOW);
  const directory = await targetOf(settings.text('submit-to'));
  const status = await statusOfBatch(directory);
  const name = settings.text('submit-name') ?? nameFor(program[0] ?? '', status);
  await askBatch(directory, { asks: 'submit', job: JSON.stringify(jobOf(name, program, settings)) });
  await standardStreams().stdout.print(`${directory.id}/${name}\n`);
  return 0;
}

/** As a batch file has it. */
function jobOf(name: string, command: readonly string[], settings: Settings<SubmitName>): Record<string, unknown> {
  const given = {
    ntasks: whole(settings.text('submit-ranks'), '-n'),
    after: settings.text('submit-after')?.split(','),
    time_limit: settings.text('submit-time') ?? undefined,
    priority: whole(settings.text('submit-priority'), '--priority'),
    output: settings.text('submit-output') ?? undefined,
  };
  return { name, command, working_dir: process.cwd(), ...given };
}

function whole(text: string | null, flag: string): number | undefined {
  if (text === null) return undefined;
  if (!/^[0-9]{1,9}$/u.test(text)) throw usageError(`${flag} needs a whole number, and has "${text}"`, HOW);
  return Number(text);
}

async function targetOf(word: string | null): Promise<BatchDirectory> {
  if (word !== null) return namedBatch(word, process.env).directory;
  const all = await Promise.all(
    allBatches(process.env).map(async (directory) => ({ directory, status: await statusOfBatch(directory) })),
  );
  const [first, ...others] = all.filter(({ status }) => status.scheduler !== null);
  if (first === undefined)
    throw usageError('no batch of yours runs on this machine', 'begin one with ncclrun batch, or name one with --to');
  if (others.length === 0) return first.directory;
  const names = [first, ...others].map(({ directory }) => directory.id).join(', ');
  throw usageError(`several batches run: ${names}`, `say which one gets the job: --to ${first.directory.id}`);
}

/** Unlike those that are there: `train`, `train-2` … */
function nameFor(program: string, { tasks }: BatchStatus): string {
  const base =
    basename(program)
      .toLowerCase()
      .replace(/\.[a-z]+$/u, '')
      .replaceAll(/[^a-z0-9_-]/gu, '-')
      .replace(/^[-_]+/u, '')
      .slice(0, 48) || 'job';
  const used = new Set(tasks.map((task) => task.name.replace(/\[.*$/u, '')));
  for (let number = 1; ; number += 1) {
    const name = number === 1 ? base : `${base}-${number}`;
    if (!used.has(name)) return name;
  }
}
