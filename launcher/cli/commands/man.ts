/** `ncclrun man`: the manual page, written from the tables. */
import { installedVersion } from '../../local/host.ts';
import { standardStreams } from '../../report/standard-streams.ts';
import { commandTable } from '../command-table.ts';
import { manualPage } from '../manual.ts';
import { readWords } from '../read-words.ts';

/** Throws a FailureError (usage). */
export async function man(argv: readonly string[]): Promise<number> {
  const { asked } = await readWords<'help'>(argv, commandTable.man);
  if (asked === 'help') return (await import('./help.ts')).help('man');
  await standardStreams().stdout.print(manualPage(installedVersion()));
  return 0;
}
