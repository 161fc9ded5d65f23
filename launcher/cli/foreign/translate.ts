/** An option of another launcher → our words, a note, or what to write instead. */
import type { ForeignTool, Treatment } from './foreign-option.ts';
import { bareFlag } from '../../model/flags.ts';
import { entriesOf, type FoundOption } from './tables.ts';

/** What is not understood on a command line, and what to write instead. */
export interface Problem {
  readonly flag: string;
  readonly message: string;
  readonly remedy: string;
}

/** An option that is ignored, as typed, and why. */
export interface Note {
  readonly option: string;
  readonly reason: string;
}

type Translation =
  | { readonly type: 'words'; readonly words: readonly string[] }
  | { readonly type: 'note'; readonly note: Note }
  | { readonly type: 'nodes'; readonly count: string }
  | { readonly type: 'module' }
  | { readonly type: 'problem'; readonly problem: Problem };

export interface Translated {
  readonly translation: Translation;
  /** Tools that have the option. */
  readonly tools: readonly string[];
  /** As typed. */
  readonly flag: string;
  /** Index of the word after the option. */
  readonly next: number;
}

/**
 * Null if no table has the option at `index`. `which`: entries for certain values, which come before our own options of that name, or those
 * for every value. `isOption`: a word that is an option is no value.
 */
export function translated(
  argv: readonly string[],
  index: number,
  tools: readonly ForeignTool[],
  which: 'certain' | 'any',
  isOption: (word: string) => boolean,
): Translated | null {
  const word = argv[index] ?? '';
  const equals = word.indexOf('=');
  const flag = equals === -1 ? word : word.slice(0, equals);
  if (bareFlag(flag) === '') return null;
  const all = tools.flatMap((tool) => firstThatFits(entriesOf(flag, [tool]), argv, index, which, isOption));
  const [any] = all;
  if (any === undefined) return null;
  const found = isOne(all, any) ? all : ofLine(all, argv, index, tools);
  const first = found[0] ?? any;
  const { next } = first;
  const named = [...new Set(found.map(({ tool }) => tool))];
  if (first.missing) {
    const message = `${flag} needs a value`;
    const problem = { flag, message, remedy: `write ${flag} ${first.option.argument}` };
    return { translation: { type: 'problem', problem }, tools: named, flag, next };
  }
  if (isOne(found, first))
    return { translation: treated(first, flag, first.values, argv.slice(index, next)), tools: named, flag, next };
  const remedy = found.map((entry) => `as in ${entry.tool}: ${adviceOf(entry, entry.values)}`).join('; ');
  const message = `${flag} has different meanings in ${listed(named)}`;
  const last = Math.max(...found.map((entry) => entry.next));
  return { translation: { type: 'problem', problem: { flag, message, remedy } }, tools: named, flag, next: last };
}

/** Of one tool's entries the first that applies. */
function firstThatFits(
  entries: readonly FoundOption[],
  argv: readonly string[],
  index: number,
  which: 'certain' | 'any',
  isOption: (word: string) => boolean,
): (FoundOption & Values)[] {
  const equals = (argv[index] ?? '').indexOf('=');
  return entries
    .filter(({ option }) => (which === 'any') === (option.when === null))
    .map((entry) => ({ ...entry, ...valuesOf(argv, index, equals, entry.option.argument, isOption) }))
    .filter(({ option, values }) => fits(option.when, values))
    .slice(0, 1);
}

interface Values {
  readonly values: readonly string[];
  readonly next: number;
  readonly missing: boolean;
}

function valuesOf(
  argv: readonly string[],
  index: number,
  equals: number,
  argument: string,
  isOption: (word: string) => boolean,
): Values {
  const names = argument === '' ? [] : argument.split(' ');
  const attached = equals === -1 ? [] : [(argv[index] ?? '').slice(equals + 1)];
  const wanted = argument.startsWith('[') ? 0 : Math.max(0, names.length - attached.length);
  const following = argv.slice(index + 1, index + 1 + wanted);
  const end = following.findIndex((word) => word.startsWith('-') && isOption(word));
  const taken = end === -1 ? following : following.slice(0, end);
  return { values: [...attached, ...taken], next: index + 1 + taken.length, missing: taken.length < wanted };
}

/** Of entries that differ those of the tool that has more of the line's other options than any other; all, where there is none. */
function ofLine<Entry extends FoundOption>(
  entries: readonly Entry[],
  argv: readonly string[],
  index: number,
  tools: readonly ForeignTool[],
): readonly Entry[] {
  const others = argv.filter((word, at) => at !== index && /^-./u.test(word)).map((word) => word.split('=')[0] ?? word);
  const flags = [...new Set(others)];
  const known = entries.map(({ tool }) => {
    const table = tools.filter(({ name }) => name === tool);
    return flags.filter((flag) => entriesOf(flag, table).length > 0).length;
  });
  const most = Math.max(...known);
  const best = entries.filter((_, at) => known[at] === most);
  return new Set(best.map(({ tool }) => tool)).size === 1 ? best : entries;
}

function isOne(entries: readonly FoundOption[], { option: first }: FoundOption): boolean {
  return entries.every(({ option }) => isSame(option.treatment, option.text, first));
}

/** Several are one where all are ignored, or all have the same effect. */
function isSame(treatment: Treatment, text: string, first: { treatment: Treatment; text: string }): boolean {
  return treatment === first.treatment && (treatment === 'ignored' || text === first.text);
}

function fits(when: RegExp | null, values: readonly string[]): boolean {
  return when === null || (values[0] !== undefined && when.test(values[0]));
}

function treated(
  { tool, option: { treatment, text, when } }: FoundOption,
  flag: string,
  values: readonly string[],
  typed: readonly string[],
): Translation {
  switch (treatment) {
    case 'means':
      return { type: 'words', words: filled(text, values) };
    case 'each':
    case 'exports': {
      const items = (values[0] ?? '').split(',').filter((item) => item !== '');
      const all = treatment === 'exports' ? 'ALL' : null;
      return { type: 'words', words: items.flatMap((item) => filled(text, [item === all ? '*' : item])) };
    }
    case 'ignored':
      return { type: 'note', note: { option: typed.join(' '), reason: filledText(text, values) } };
    case 'nodes':
      return { type: 'nodes', count: values[0] ?? '' };
    case 'module':
      return { type: 'module' };
    case 'instead': {
      // Where it depends on the value, the option may be ours as well.
      const message = `${when === null ? flag : typed.join(' ')} is an option of ${tool} that ncclrun does not have`;
      return { type: 'problem', problem: { flag, message, remedy: filledText(text, values) } };
    }
    default:
      return treatment satisfies never;
  }
}

/** What an entry means, for a line that may mean several. */
function adviceOf({ option: { treatment, text } }: FoundOption, values: readonly string[]): string {
  if (treatment === 'ignored') return `leave it out (${filledText(text, values)})`;
  if (treatment === 'module') return 'write python3 -m MODULE';
  return treatment === 'instead' ? filledText(text, values) : `write ${filled(text, values).join(' ')}`;
}

/** The words of `text`; a word in double quotes may have spaces. */
function filled(text: string, values: readonly string[]): string[] {
  return (text.match(/"[^"]*"|\S+/gu) ?? []).map((word) => filledText(word.replaceAll('"', ''), values));
}

function filledText(text: string, values: readonly string[]): string {
  return text.replaceAll(/\{([12])\}/gu, (_place, digit: string) => values[Number(digit) - 1] ?? '');
}

function listed(all: readonly string[]): string {
  return all.length === 1 ? `${all[0]}` : `${all.slice(0, -1).join(', ')} and ${all.at(-1)}`;
}
