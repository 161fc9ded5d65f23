/**
 * Splits the command line at the programs: options are ours up to the first word that is neither an option nor an option's value;
 * from there on everything is the user's, as typed, up to a lone `:`, after which options of another program may stand. `--` ends the
 * options too, and lets `:` pass.
 */
import { nearest } from '../text/nearest.ts';
import type { CommandLine, Option } from '../model/option.ts';
import { usageError } from '../model/usage-error.ts';

/** An option as it was given. */
export interface GivenOption {
  readonly option: Option;
  /** As typed, for messages. */
  readonly flag: string;
  readonly value: string;
}

/** Options, and what follows them. */
interface Part {
  readonly given: readonly GivenOption[];
  /** The program and its arguments, or the command's own words. */
  readonly words: readonly string[];
}

interface SplitCommandLine extends Part {
  /** The programs after the first; each has a word at least. */
  readonly further: readonly Part[];
}

/** Throws a FailureError (usage): unknown option, missing value, a `:` without a program on both sides. */
export function splitCommandLine(argv: readonly string[], line: CommandLine): SplitCommandLine {
  const { given, words, rest: afterFirst } = readPart(argv, line);
  if (afterFirst === null) return { given, words, further: [] };
  if (words.length === 0) throw usageError("no program before the ':'", separatorRemedy);
  const further: Part[] = [];
  for (let rest: readonly string[] | null = afterFirst; rest !== null; ) {
    const part = readPart(rest, line);
    for (const { option, flag } of part.given) {
      if (option.perProgram !== true) {
        throw usageError(
          `${flag} stands after a ':', but it is for the whole job`,
          `move ${flag} before the first program`,
        );
      }
    }
    if (part.words.length === 0) throw usageError("no program after the ':'", separatorRemedy);
    further.push({ given: part.given, words: part.words });
    ({ rest } = part);
  }
  return { given, words, further };
}

const separatorRemedy =
  "a lone ':' stands between two programs: ncclrun -n 1 A : -n 2 B; to hand it to a program, write: ncclrun -- PROGRAM … : …";

/** Up to the end of a program's words; `rest` is what follows its `:`. */
function readPart(argv: readonly string[], line: CommandLine): Part & { readonly rest: readonly string[] | null } {
  const given: GivenOption[] = [];
  const words: string[] = [];
  let index = 0;
  while (index < argv.length) {
    const word = argv[index] ?? '';
    if (word === '--') return { given, words: [...words, ...argv.slice(index + 1)], rest: null };
    if (!word.startsWith('-') || word === '-') {
      if (line.words === 'program') {
        const colon = argv.indexOf(':', index);
        if (colon === -1) return { given, words: argv.slice(index), rest: null };
        return { given, words: argv.slice(index, colon), rest: argv.slice(colon + 1) };
      }
      words.push(word);
      index += 1;
      continue;
    }
    const { option, next } = readOption(argv, index, line);
    given.push(option);
    index = next;
  }
  return { given, words, rest: null };
}

function readOption(argv: readonly string[], index: number, line: CommandLine): { option: GivenOption; next: number } {
  const word = argv[index] ?? '';
  const equals = word.indexOf('=');
  const flag = equals === -1 ? word : word.slice(0, equals);
  const attached = equals === -1 ? null : word.slice(equals + 1);

  const pair = findByFlag(flag, line, (option) => option.pairFlags ?? []);
  if (pair !== null) return readPair(argv, index, pair, flag);

  const option = findByFlag(flag, line, (candidate) => candidate.flags);
  if (option === null) throw unknownOption(word, flag, line);
  if (attached !== null) return { option: { option, flag, value: attached }, next: index + 1 };

  const implied = impliedValue(option);
  if (implied !== null) return { option: { option, flag, value: implied }, next: index + 1 };

  const value = argv[index + 1];
  const swallowed =
    value !== undefined && value.startsWith('-') && findByFlag(value, line, (other) => other.flags) !== null;
  if (value === undefined || swallowed) {
    const remedy = `write ${flag} ${option.argument}${swallowed ? `, or ${flag}=${value} if that is the value` : ''}`;
    throw usageError(`${flag} needs a value`, remedy);
  }
  return { option: { option, flag, value }, next: index + 2 };
}

function readPair(
  argv: readonly string[],
  index: number,
  option: Option,
  flag: string,
): { option: GivenOption; next: number } {
  const name = argv[index + 1];
  const value = argv[index + 2];
  if (name === undefined || value === undefined)
    throw usageError(`${flag} needs a name and a value`, `write ${flag} NAME VALUE`);
  return { option: { option, flag, value: `${name}=${value}` }, next: index + 3 };
}

/** One or two dashes are alike (mpirun's -hostfile and --hostfile), capitals are not. */
export function findByFlag(
  flag: string,
  line: CommandLine,
  flagsOf: (option: Option) => readonly string[],
): Option | null {
  const bare = withoutDashes(flag);
  if (bare === '') return null;
  return line.options.find((option) => flagsOf(option).some((known) => withoutDashes(known) === bare)) ?? null;
}

function withoutDashes(flag: string): string {
  return flag.replace(/^--?/u, '');
}

/** What the option means without a value; null if it must have one. */
export function impliedValue(option: Option): string | null {
  if (option.kind.type === 'flag') return 'true';
  return option.kind.type === 'optional-choice' ? option.kind.implied : null;
}

export function unknownOption(word: string, flag: string, line: CommandLine): Error {
  const command = line.command === 'run' ? 'ncclrun --help' : `ncclrun ${line.command} --help`;
  const [, letters, digits] = /^-([A-Za-z]+)([0-9].*)$/u.exec(flag) ?? [];
  if (line.options.some((option) => option.flags.includes(`-${letters}`)))
    return usageError(`unknown option ${word}`, `did you mean -${letters} ${digits}?`);
  const known = line.options.flatMap((option) => [...option.flags, ...(option.pairFlags ?? [])]);
  const guess = nearest(
    flag,
    known.filter((candidate) => candidate.length > 2),
  );
  return usageError(`unknown option ${flag}`, `${guess === null ? '' : `did you mean ${guess}? `}${command} lists all`);
}
