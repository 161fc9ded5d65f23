/** What is said of options that no table has, and of several at once. */
import { nearest } from '../text/nearest.ts';
import type { CommandLine } from '../model/option.ts';
import { usageError } from '../model/usage-error.ts';
import { bareFlag } from '../model/flags.ts';
import type { Problem } from './foreign/translate.ts';

/** One problem has a sentence of its own; of several, each has a line with what to write instead. */
export function problemsError(problems: readonly Problem[]): Error {
  const [first, ...others] = problems;
  if (first === undefined) throw new Error('there is no problem');
  if (others.length === 0) return usageError(first.message, first.remedy);
  const flags = problems.map(({ flag }) => flag);
  const lines = problems.map(({ flag, remedy }) => `${flag}: ${remedy}`);
  return usageError(`${flags.length} options cannot be used as they stand: ${flags.join(', ')}`, lines.join('\n'));
}

export function unknownProblem(word: string, line: CommandLine): Problem {
  const [flag = ''] = word.split('=', 1);
  const command = line.command === 'run' ? 'ncclrun --help all' : `ncclrun ${line.command} --help`;
  const [, letters, digits] = /^-([A-Za-z]+)([0-9].*)$/u.exec(flag) ?? [];
  const attached = line.options.find((option) => option.flags.includes(`-${letters}`));
  if (attached !== undefined) {
    const meaning = letters === 'N' ? ` (ranks on each host)? For srun it is --nodes ${digits}` : '?';
    return { flag, message: `unknown option ${word}`, remedy: `did you mean -${letters} ${digits}${meaning}` };
  }
  const guess = nearest(flag, guessable(flag, line));
  const remedy = `${guess === null ? '' : `did you mean ${guess}? `}${command} lists all`;
  return { flag, message: `unknown option ${flag}`, remedy };
}

/** Options that `flag` may be a misspelling of; none that means the opposite. */
function guessable(flag: string, line: CommandLine): string[] {
  const known = line.options.flatMap((option) => [...option.flags, ...(option.pairFlags ?? [])]);
  return known.filter((candidate) => candidate.length > 2 && denies(candidate) === denies(flag));
}

/** `--no-stage`, `--nooversubscribe`; `--nodes` is none. */
function denies(flag: string): boolean {
  return /^no-?[a-z]{4}/u.test(bareFlag(flag));
}
