/** The command as understood: usual flag names, settings from everywhere written out, the program as typed. */
import { printableLine } from '../../control/printable.ts';
import type { CommandLine, Option } from '../model/option.ts';
import type { Settings } from './settings.ts';

/** Options of start and output, which do not define the job. */
const left = new Set(['dry-run', 'explain', 'json', 'verbose', 'help', 'version']);

/** Words that, given to ncclrun, mean the same wherever they are typed. */
export function normalisedCommand<Name extends string>(
  line: CommandLine & { readonly options: readonly (Option & { readonly name: Name })[] },
  settings: Settings<Name>,
  program: readonly string[],
  further: readonly { readonly settings: Settings<Name>; readonly words: readonly string[] }[] = [],
): string[] {
  const first = [...optionWords(line.options, settings), ...programWords(program)];
  const ofProgram = line.options.filter((option) => option.perProgram === true);
  const others = further.flatMap((part) => [
    ':',
    ...optionWords(ofProgram, part.settings),
    ...programWords(part.words),
  ]);
  return ['ncclrun', ...first, ...others];
}

function optionWords<Name extends string>(
  options: readonly (Option & { readonly name: Name })[],
  settings: Settings<Name>,
): string[] {
  const words: string[] = [];
  for (const option of options) {
    const setting = settings.setting(option.name);
    const [flag] = option.flags;
    if (setting === null || flag === undefined || setting.source === 'default' || left.has(option.name)) continue;
    if (option.kind.type === 'flag') {
      if (settings.flag(option.name)) words.push(flag);
    } else if ('implied' in option.kind) {
      words.push(`${flag}=${settings.text(option.name) ?? ''}`);
    } else {
      for (const value of setting.values) words.push(flag, value);
    }
  }
  return words;
}

function programWords(program: readonly string[]): readonly string[] {
  return program[0]?.startsWith('-') || program.includes(':') ? ['--', ...program] : program;
}

/** `words` as one line for a shell; a word that a terminal would not show as it is has the form of bash's $'…'. */
export function shellLine(words: readonly string[]): string {
  return words.map(shellWord).join(' ');
}

function shellWord(word: string): string {
  if (/^[A-Za-z0-9_@%+=:,./-]+$/u.test(word)) return word;
  if (printableLine(word) === word) return `'${word.replaceAll("'", String.raw`'\''`)}'`;
  return `$'${printableLine(word.replaceAll(/[\\']/gu, String.raw`\$&`))}'`;
}
