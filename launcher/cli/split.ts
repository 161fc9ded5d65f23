/**
 * Splits the command line at the programs: options are ours up to the first word that is neither an option nor an option's value;
 * from there on everything is the user's, as typed, up to a lone `:`, after which options of another program may stand. `--` ends the
 * options too, and lets `:` pass.
 */
import type { CommandLine, Option } from '../model/option.ts';
import { usageError } from '../model/usage-error.ts';
import { findByFlag, findByPairFlag } from '../model/flags.ts';
import { isOfCertainValues } from './foreign/certain-flags.ts';
import { toolsOf } from './foreign/tables.ts';
import { translated, type Note, type Problem, type Translated } from './foreign/translate.ts';
import { withRanksOfNodes } from './foreign/nodes.ts';
import { problemsError, unknownProblem } from './unknown-option.ts';

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
  /** What was ignored and why, for the user. */
  readonly notes: readonly string[];
  /** The programs after the first; each has a word at least. */
  readonly further: readonly Part[];
}

/** Throws a FailureError (usage): unknown options, a missing value, a `:` without a program on both sides. */
export function splitCommandLine(argv: readonly string[], line: CommandLine): SplitCommandLine {
  const remarks: Remarks = { problems: [], notes: [], ofSrun: null };
  const parts = readParts(argv, line, remarks);
  refuseNodes(parts, remarks);
  if (remarks.problems.length > 0) throw problemsError(remarks.problems);
  return { ...parts, notes: noteLines(remarks.notes) };
}

/** What is said of options of other tools. */
interface Remarks {
  readonly problems: Problem[];
  readonly notes: Note[];
  /** An option that srun alone has. */
  ofSrun: string | null;
}

/** On a line for srun, -N is the number of hosts. */
function refuseNodes({ given, further }: Omit<SplitCommandLine, 'notes'>, { problems, ofSrun }: Remarks): void {
  const found = [given, ...further.map((part) => part.given)].flat().find(({ flag }) => flag === '-N');
  if (found === undefined || ofSrun === null) return;
  const { value } = found;
  const message = `-N ${value} beside ${ofSrun}, which is an option of srun, has two meanings`;
  const remedy = `write --nodes ${value} for the number of hosts, --npernode ${value} for ranks on each host`;
  problems.push({ flag: '-N', message, remedy });
}

/** A line for each reason. */
function noteLines(notes: readonly Note[]): string[] {
  const reasons = [...new Set(notes.map(({ reason }) => reason))];
  return reasons.map((reason) => {
    const options = [...new Set(notes.filter((note) => note.reason === reason).map(({ option }) => option))];
    return `${options.join(', ')} ${options.length === 1 ? 'is' : 'are'} ignored: ${reason}`;
  });
}

function readParts(argv: readonly string[], line: CommandLine, remarks: Remarks): Omit<SplitCommandLine, 'notes'> {
  const { given, words, rest: afterFirst } = readPart(argv, line, remarks);
  if (afterFirst === null) return { given, words, further: [] };
  if (words.length === 0) throw usageError("no program before the ':'", separatorRemedy);
  const further: Part[] = [];
  for (let rest: readonly string[] | null = afterFirst; rest !== null; ) {
    const part = readPart(rest, line, remarks);
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

type ReadPart = Part & { readonly rest: readonly string[] | null };

/** Up to the end of a program's words; `rest` is what follows its `:`. */
function readPart(argv: readonly string[], line: CommandLine, remarks: Remarks): ReadPart {
  const given: GivenOption[] = [];
  const words: string[] = [];
  const nodes: Translated[] = [];
  let index = 0;
  const result = (own: readonly string[], rest: readonly string[] | null): ReadPart => {
    const withRanks = nodes.reduce<readonly GivenOption[]>((options, count) => {
      return withRanksOfNodes(options, count, line, remarks.problems);
    }, given);
    return { given: withRanks, words: own, rest };
  };
  while (index < argv.length) {
    const word = argv[index] ?? '';
    if (word === '--') return result([...words, ...argv.slice(index + 1)], null);
    if (!word.startsWith('-') || word === '-') {
      if (line.words === 'program') {
        const colon = argv.indexOf(':', index);
        const program = [...words, ...argv.slice(index, colon === -1 ? undefined : colon)];
        return result(program, colon === -1 ? null : argv.slice(colon + 1));
      }
      words.push(word);
      index += 1;
      continue;
    }
    const foreign = foreignOption(argv, index, line) ?? attachedForeignOption(argv, index, line);
    if (foreign !== null) {
      index = foreign.next;
      const { translation, tools, flag } = foreign;
      if (tools.join() === 'Slurm' && ownOption(flag, line) === null) remarks.ofSrun ??= flag;
      if (translation.type === 'words') given.push(...ownOptions(translation.words, foreign.flag, line));
      else if (translation.type === 'note') remarks.notes.push(translation.note);
      else if (translation.type === 'nodes') nodes.push(foreign);
      else if (translation.type === 'problem') remarks.problems.push(translation.problem);
      else words.push('python3', '-m');
      continue;
    }
    if (ownOption(word, line) === null) {
      remarks.problems.push(unknownProblem(word, line));
      index += isNumber(argv[index + 1]) ? 2 : 1;
      continue;
    }
    const { option, next } = readOption(argv, index, line);
    given.push(option);
    index = next;
  }
  return result(words, null);
}

/** An entry for a certain value stands before our own option of that name (but for tune's), one for every value behind it. */
function foreignOption(argv: readonly string[], index: number, line: CommandLine): Translated | null {
  const word = argv[index] ?? '';
  const isOwn = ownOption(word, line) !== null;
  if (isOwn && !isOfCertainValues(word)) return null;
  const isOption = (word: string) => ownOption(word, line) !== null;
  for (const tools of toolsOf(line)) {
    const isTunes = isOwn && line.command === 'tune';
    const found =
      (isTunes ? null : translated(argv, index, tools, 'certain', isOption)) ??
      (isOwn ? null : translated(argv, index, tools, 'any', isOption));
    if (found !== null) return found;
  }
  return null;
}

/** `-c4`, `-K1`: a letter that other tools have for an option, and the number that srun lets stand right behind it. */
function attachedForeignOption(argv: readonly string[], index: number, line: CommandLine): Translated | null {
  const word = argv[index] ?? '';
  const [, flag, value] = /^(-[A-Za-z])([0-9][^=]*)$/u.exec(word) ?? [];
  if (flag === undefined || ownOption(flag, line) !== null) return null;
  const found = foreignOption([`${flag}=${value}`], 0, line);
  if (found === null) return null;
  const { translation } = found;
  const typed =
    translation.type === 'note'
      ? { ...translation, note: { ...translation.note, option: word } }
      : translation.type === 'problem'
        ? { ...translation, problem: { ...translation.problem, flag: word } }
        : translation;
  return { ...found, translation: typed, flag: word, next: index + 1 };
}

/** The options that `words` state, with the flag that the user typed. */
function ownOptions(words: readonly string[], flag: string, line: CommandLine): GivenOption[] {
  const given: GivenOption[] = [];
  for (let index = 0; index < words.length; ) {
    const { option, next } = readOption(words, index, line);
    given.push({ ...option, flag });
    index = next;
  }
  return given;
}

function ownOption(word: string, line: CommandLine): Option | null {
  const [flag = ''] = word.split('=', 1);
  return findByFlag(flag, line) ?? findByPairFlag(flag, line);
}

/** A number behind an unknown option is its value: no program is named so. */
function isNumber(word: string | undefined): boolean {
  return word !== undefined && /^[0-9]+$/u.test(word);
}

function readOption(argv: readonly string[], index: number, line: CommandLine): { option: GivenOption; next: number } {
  const word = argv[index] ?? '';
  const equals = word.indexOf('=');
  const flag = equals === -1 ? word : word.slice(0, equals);
  const attached = equals === -1 ? null : word.slice(equals + 1);

  const pair = findByPairFlag(flag, line);
  if (pair !== null) return readPair(argv, index, pair, flag);

  const option = findByFlag(flag, line);
  if (option === null) throw problemsError([unknownProblem(word, line)]);
  if (attached !== null) return { option: { option, flag, value: attached }, next: index + 1 };

  const implied = impliedValue(option);
  if (implied !== null) return { option: { option, flag, value: implied }, next: index + 1 };

  const value = argv[index + 1];
  const swallowed = value !== undefined && value.startsWith('-') && findByFlag(value, line) !== null;
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

/** What the option means without a value; null if it must have one. */
export function impliedValue(option: Option): string | null {
  if (option.kind.type === 'flag') return 'true';
  return 'implied' in option.kind ? option.kind.implied : null;
}
