/** `ncclrun cancel`, `hold`, `release` and `rerun BATCH[/TASK]`. */
import { counted } from '../../text/counted.ts';
import { usageError } from '../../model/usage-error.ts';
import { standardStreams } from '../../report/standard-streams.ts';
import { askBatch, namedBatch } from '../batch/batches.ts';
import { commandTable } from '../command-table.ts';
import { readWords } from '../read-words.ts';

const DONE = { cancel: 'cancelled', hold: 'held', release: 'released', rerun: 'queued again' } as const;

type Change = keyof typeof DONE;

/** Returns 1 if nothing changed. Throws a FailureError (usage). */
export async function changeTasks(change: Change, argv: readonly string[]): Promise<number> {
  const { asked, settings, words } = await readWords<'help' | 'released-host'>(argv, commandTable[change]);
  if (asked === 'help') return (await import('./help.ts')).help(change);
  const [word, ...others] = words;
  if (word === undefined || others.length > 0)
    throw usageError(
      `${change} needs one batch, and has ${words.length}`,
      `write: ncclrun ${change} BATCH or BATCH/TASK, as ncclrun jobs lists them`,
    );
  const { directory, tasks } = namedBatch(word, process.env);
  const host = change === 'release' ? settings.text('released-host') : null;
  const answer = await askBatch(directory, host === null ? { asks: change, tasks } : { asks: 'release-host', host });
  const count = answer.answer === 'done' ? answer.tasks : 0;
  const text =
    host === null
      ? `${counted(count, 'task')} ${DONE[change]}`
      : `${host} ${count === 0 ? 'was not taken out' : 'gets tasks again'}`;
  await standardStreams().stdout.print(`${text}\n`);
  return count === 0 ? 1 : 0;
}
