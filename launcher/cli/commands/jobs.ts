/** `ncclrun jobs [BATCH[/TASK]]`: batches and their tasks. */
import { pause } from '../batch/pause.ts';
import type { BatchStatus } from '../../batch/serve/request.ts';
import { batchesText, batchText } from '../../batch/text/status-table.ts';
import { standardStreams } from '../../report/standard-streams.ts';
import { allBatches, namedBatch, statusOfBatch } from '../batch/batches.ts';
import { commandTable } from '../command-table.ts';
import { readWords } from '../read-words.ts';
import type { Settings } from '../settings.ts';

const WATCH_MS = 1000;
/** Every look costs Slurm's daemon time. */
const WATCH_SLURM_MS = 5000;
/** Clears a terminal. */
const CLEAR = '\u001B[H\u001B[2J';

type JobsSettings = Settings<'help' | 'failed' | 'watch' | 'json'>;

/** Throws a FailureError (usage). */
export async function jobs(argv: readonly string[]): Promise<number> {
  const { asked, settings, words } = await readWords<'help' | 'failed' | 'watch' | 'json'>(argv, commandTable.jobs);
  if (asked === 'help') return (await import('./help.ts')).help('jobs');
  const streams = standardStreams();
  for (;;) {
    const { text, goesOn, inSlurm } = await shown(words[0] ?? null, settings);
    await streams.stdout.print(settings.flag('watch') && streams.stdoutIsTerminal() ? `${CLEAR}${text}` : text);
    if (!settings.flag('watch') || !goesOn) return 0;
    await pause(inSlurm ? WATCH_SLURM_MS : WATCH_MS);
  }
}

interface Shown {
  readonly text: string;
  readonly goesOn: boolean;
  readonly inSlurm: boolean;
}

async function shown(word: string | null, settings: JobsSettings): Promise<Shown> {
  if (word === null) {
    const batches = await Promise.all(allBatches(process.env).map(statusOfBatch));
    const json = settings.flag('json');
    const text = json ? `${JSON.stringify({ schemaVersion: 1, batches })}\n` : batchesText(batches, Date.now());
    return { text, goesOn: batches.some(goesOn), inSlurm: batches.some(({ via }) => via === 'slurm') };
  }
  const { directory, tasks } = namedBatch(word, process.env);
  const status = await statusOfBatch(directory);
  const filtered = { ...status, tasks: status.tasks.filter((task) => isWanted(task, tasks, settings)) };
  const text = settings.flag('json') ? `${JSON.stringify(filtered)}\n` : batchText(status, Date.now(), filtered.tasks);
  return { text, goesOn: goesOn(status), inSlurm: status.via === 'slurm' };
}

/** Slurm needs nobody who watches. */
function goesOn({ scheduler, via, endedAt }: BatchStatus): boolean {
  return scheduler !== null || (via === 'slurm' && endedAt === null);
}

function isWanted({ name, state }: BatchStatus['tasks'][number], tasks: string, settings: JobsSettings): boolean {
  const isNamed = tasks === '' || name === tasks || name.startsWith(`${tasks}[`);
  return isNamed && (!settings.flag('failed') || state === 'failed' || state === 'lost' || state === 'timed-out');
}
