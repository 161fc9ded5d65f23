/** `ncclrun replay REPORT`: what each rank did last, from the flight recorders in a report. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../../control/message-of.ts';
import { printableLine } from '../../../control/printable.ts';
import { installationRoot } from '../../local/host.ts';
import { usageError } from '../../model/usage-error.ts';
import { alignedCommunicators } from '../../replay/clocks.ts';
import { pageData, pageOf } from '../../replay/page-data.ts';
import { latestNs, perfettoTrace } from '../../replay/perfetto.ts';
import { readReplay } from '../../replay/read-file.ts';
import { replayText } from '../../replay/text.ts';
import { standardStreams } from '../../report/standard-streams.ts';
import { commandTable } from '../command-table.ts';
import { readWords } from '../read-words.ts';

const LAST = 32;

/** Throws a FailureError (usage), also for a file that has no recorded operations. */
export async function replay(argv: readonly string[]): Promise<number> {
  const { asked, settings, words } = await readWords<
    'help' | 'replayed-rank' | 'last' | 'perfetto' | 'html' | 'redact'
  >(argv, commandTable.replay);
  if (asked === 'help') return (await import('./help.ts')).help('replay');
  const [path, ...others] = words;
  if (path === undefined || others.length > 0)
    throw usageError(`replay needs one file, and has ${words.length}`, `write: ${commandTable.replay.usage}`);
  const [trace, html] = [settings.text('perfetto'), settings.text('html')];
  if (settings.flag('redact') && html === null)
    throw usageError('--redact is about the page of --html', 'add --html FILE, or leave --redact out');
  const read = readReplay(path);
  const rank = settings.integer('replayed-rank');
  if (rank !== null && read.ranks.every((one) => one.rank !== rank))
    throw usageError(`${path} has nothing of rank ${rank}`, 'name a rank that recorded operations');
  const { replay: aligned, communicators } = alignedCommunicators(read);
  const { stdout } = standardStreams();
  if (html !== null) {
    const data = pageData(aligned, communicators, { redact: settings.flag('redact') });
    write('--html', html, pageOf(pageTemplate(), data));
    await stdout.print(printableLine(`wrote ${html}: open it in a browser`) + '\n');
  }
  if (trace !== null) {
    const made = perfettoTrace(aligned, communicators, latestNs(communicators));
    write('--perfetto', trace, made.text);
    const left = made.omitted > 0 ? `, without the oldest ${made.omitted} operations` : '';
    await stdout.print(printableLine(`wrote ${trace}${left}: open it at https://ui.perfetto.dev`) + '\n');
  }
  if (html === null && trace === null)
    await stdout.print(replayText(aligned, communicators, { rank, last: settings.integer('last') ?? LAST }));
  return 0;
}

function pageTemplate(): string {
  const path = join(installationRoot, 'dist/bundle/replay.html');
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw usageError(`${path} cannot be read: ${messageOf(error)}`, 'install ncclrun again, or build it to its end');
  }
}

function write(option: string, path: string, text: string): void {
  try {
    writeFileSync(path, text);
  } catch (error) {
    throw usageError(
      `${option} ${path} cannot be written: ${messageOf(error)}`,
      'name a file in a directory you may write to',
    );
  }
}
