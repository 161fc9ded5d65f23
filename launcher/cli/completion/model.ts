/** What the three shells' scripts are written from. */
import { type CommandName, commandNames } from '../../model/command-names.ts';
import { type CommandEntry, commandTable, runEntry } from '../command-table.ts';
import type { Option } from '../../model/option.ts';

type ValueKind =
  | { readonly type: 'file' }
  | { readonly type: 'directory' }
  | { readonly type: 'hosts' }
  /** One of these words. */
  | { readonly type: 'words'; readonly words: readonly string[] }
  | { readonly type: 'unknown' };

/** How an option's value is given. */
type Takes = 'nothing' | 'attached' | 'word';

export const names: readonly ('run' | CommandName)[] = ['run', ...commandNames];

export function entryOf(name: 'run' | CommandName): CommandEntry {
  return name === 'run' ? runEntry : commandTable[name];
}

export function takes({ kind }: Option): Takes {
  if (kind.type === 'flag') return 'nothing';
  return 'implied' in kind ? 'attached' : 'word';
}

export function valueKind({ kind, argument, name }: Option): ValueKind {
  if (name === 'host' || argument === 'HOST') return { type: 'hosts' };
  if (argument === 'FILE') return { type: 'file' };
  if (argument === 'DIR') return { type: 'directory' };
  if ('choices' in kind) return { type: 'words', words: kind.choices };
  // The table writes words as they are typed in small letters, and what stands for something in capitals.
  const words = argument.split('|').flatMap((part) => /^[a-z0-9]+(?:=|$|(?=:[A-Z]))/u.exec(part)?.[0] ?? []);
  return argument.includes('|') && words.length > 0 ? { type: 'words', words } : { type: 'unknown' };
}

/** As the shell reads it, in single quotes; for bash and zsh. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

export function bare(flag: string): string {
  return flag.replace(/^--?/u, '');
}
