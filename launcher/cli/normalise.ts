/** The command as understood: usual flag names, settings from everywhere written out, the program as typed. */
import type { CommandLine } from './option.ts';
import type { Settings } from './settings.ts';

/** Options that say how to start or to print, not what the job is. */
const left = new Set(['dry-run', 'explain', 'json', 'verbose', 'help', 'version']);

/** Words that, given to ncclrun, mean the same wherever they are typed. */
export function normalisedCommand<Name extends string>(
  line: CommandLine & { readonly options: readonly { readonly name: Name }[] },
  settings: Settings<Name>,
  program: readonly string[],
): string[] {
  const words = ['ncclrun'];
  for (const option of line.options) {
    const setting = settings.setting(option.name);
    const [flag] = option.flags;
    if (setting === null || flag === undefined || setting.source === 'default' || left.has(option.name)) continue;
    if (option.kind.type === 'flag') {
      if (settings.flag(option.name)) words.push(flag);
    } else if (option.kind.type === 'optional-choice') {
      words.push(`${flag}=${settings.text(option.name) ?? ''}`);
    } else {
      for (const value of setting.values) words.push(flag, value);
    }
  }
  const [first] = program;
  if (first?.startsWith('-') || program.includes(':')) words.push('--');
  return [...words, ...program];
}

/** `words` as one line for a shell. */
export function shellLine(words: readonly string[]): string {
  return words
    .map((word) => (/^[A-Za-z0-9_@%+=:,./-]+$/u.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`))
    .join(' ');
}
