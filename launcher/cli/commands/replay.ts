/** `ncclrun replay REPORT`: what each rank did last, from the flight recorders in a report. */
import { writeFileSync } from 'node:fs';
import { messageOf } from '../../../control/message-of.ts';
import { usageError } from '../../model/usage-error.ts';
import { replayedCommunicators } from '../../replay/operations.ts';
import { latestNs, perfettoTrace } from '../../replay/perfetto.ts';
import { readReplay } from '../../replay/read-file.ts';
import { replayText } from '../../replay/text.ts';
import { standardStreams } from '../../report/standard-streams.ts';
import { commandTable } from '../command-table.ts';
import { readWords } from '../read-words.ts';

const LAST = 32;

/** Throws a FailureError (usage), also for a file that has no recorded operations. */
export async function replay(argv: readonly string[]): Promise<number> {
  const { asked, settings, words } = await readWords<'help' | 'replayed-rank' | 'last' | 'perfetto'>(
    argv,
    commandTable.replay,
  );
  if (asked === 'help') return (await import('./help.ts')).help('replay');
  const [path, ...others] = words;
  if (path === undefined || others.length > 0)
    throw usageError(`replay needs one file, and has ${words.length}`, `write: ${commandTable.replay.usage}`);
  const read = readReplay(path);
  const rank = settings.integer('replayed-rank');
  if (rank !== null && read.ranks.every((one) => one.rank !== rank))
    throw usageError(`${path} has nothing of rank ${rank}`, 'name a rank that recorded operations');
  const communicators = replayedCommunicators(read);
  const trace = settings.text('perfetto');
  if (trace === null) {
    const text = replayText(read, communicators, { rank, last: settings.integer('last') ?? LAST });
    await standardStreams().stdout.print(text);
    return 0;
  }
  try {
    writeFileSync(trace, perfettoTrace(read, communicators, latestNs(communicators)));
  } catch (error) {
    throw usageError(
      `--perfetto ${trace} cannot be written: ${messageOf(error)}`,
      'name a file in a directory you may write to',
    );
  }
  await standardStreams().stdout.print(`wrote ${trace}: open it at https://ui.perfetto.dev\n`);
  return 0;
}
