/** `ncclrun version`, `ncclrun --version` */
import { installedVersion } from '../../local/host.ts';
import { standardStreams } from '../../report/standard-streams.ts';

export async function version(): Promise<number> {
  await standardStreams().stdout.print(`ncclrun ${installedVersion()}\n`);
  return 0;
}

/** The words after `ncclrun version`. Throws a FailureError (usage): it takes none. */
export async function versionCommand(argv: readonly string[]): Promise<number> {
  const { commandTable } = await import('../command-table.ts');
  const { readWords } = await import('../read-words.ts');
  const { asked } = await readWords<'help'>(argv, commandTable.version);
  return asked === 'help' ? (await import('./help.ts')).help('version') : version();
}
