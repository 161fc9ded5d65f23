/** `ncclrun completion SHELL`: a script that knows every command, option and choice; it starts nothing while somebody types. */
import { standardStreams } from '../../report/standard-streams.ts';
import { commandTable, type shells } from '../command-table.ts';
import { bashCompletion } from '../completion/bash.ts';
import { fishCompletion } from '../completion/fish.ts';
import { zshCompletion } from '../completion/zsh.ts';
import { readWords } from '../read-words.ts';

const scripts: Readonly<Record<(typeof shells)[number], () => string>> = {
  bash: bashCompletion,
  zsh: zshCompletion,
  fish: fishCompletion,
};

/** Throws a FailureError (usage). */
export async function completion(argv: readonly string[]): Promise<number> {
  const { asked, words } = await readWords<'help'>(argv, commandTable.completion);
  if (asked === 'help') return (await import('./help.ts')).help('completion');
  const script = Object.entries(scripts).find(([shell]) => shell === words[0])?.[1];
  if (script !== undefined) await standardStreams().stdout.print(script());
  return 0;
}
