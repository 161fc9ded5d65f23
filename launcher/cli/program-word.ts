/** What stands where the program is expected, and cannot be meant as one, or starts ranks itself. */
import { existsSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import type { Option } from '../model/option.ts';
import { usageError } from '../model/usage-error.ts';
import { wanted } from '../model/values.ts';
import { isProgram } from './is-program.ts';
import type { JobOptionName } from './options.ts';
import type { Settings } from './settings.ts';

/** Dashes that documents put in the place of hyphens. */
const otherDashes = /^[\u2010-\u2015\u2212\uFE58\uFF0D][-\u2010-\u2015\u2212\uFE58\uFF0D]*/u;

const isAssignment = (text: string): boolean => /^[A-Za-z_][A-Za-z0-9_]*=/u.test(text);

/** Throws a FailureError (usage) for words that a shell, another launcher or a document turned into the program. `hostList`: -H. */
export function refuseNoProgram(words: readonly string[], hostList: string | null): void {
  const [word = ''] = words;
  const expected = `${word} stands where the program is expected`;
  if (otherDashes.test(word)) {
    const name = word.replace(otherDashes, '');
    const remedy = `write ${/^.(=|$)/u.test(name) ? '-' : '--'}${name}`;
    throw usageError(`${word} begins with a dash of a document, which is not "-"`, remedy);
  }
  if (word !== '' && word.trim() === '') {
    const remedy = 'a backslash continues a line only as its last character: remove the blank behind it';
    throw usageError('a blank stands where the program is expected', remedy);
  }
  if (/^\s/u.test(word)) {
    const remedy = `write ${word.trim()}, with a plain blank before it`;
    throw usageError(`the program's name begins with a blank: "${word}"`, remedy);
  }
  if (isAssignment(word)) {
    const end = words.findIndex((text) => !isAssignment(text));
    const variables = words.slice(0, end === -1 ? undefined : end);
    throw usageError(expected, `write ${variables.map((text) => `-x ${text}`).join(' ')} before the program`);
  }
  if (hostList !== null && /^[A-Za-z0-9_.-]+:[0-9]+$/u.test(word))
    throw usageError(expected, `hosts have commas between them: -H ${hostList},${word}`);
}

/** A line about a word that is the program since the option before it has no value, as srun's `-q QOS`; none for a program of this machine. */
export function notesOnWordBehindFlag(argv: readonly string[], words: readonly string[], path: string): string[] {
  const [word = '', next = ''] = words;
  const before = argv[argv.length - words.length - 1] ?? '';
  const isBehindFlag = before.startsWith('-') && before !== '--' && !before.includes('=');
  const isPlain = /^[A-Za-z0-9_,-]+$/u.test(word);
  if (!isBehindFlag || !isPlain || !next.startsWith('-') || isProgram(word, path)) return [];
  return [`${before} has no value here, so "${word}" is the program`];
}

/** Throws a FailureError (usage) for a word in the program's place that is a value of the option before it, which takes none as a word of its own. */
export function refuseDetachedValue(
  argv: readonly string[],
  words: readonly string[],
  options: readonly Option[],
  path: string,
): void {
  const [word = ''] = words;
  const before = argv[argv.length - words.length - 1] ?? '';
  const option = options.find(({ kind, flags }) => 'implied' in kind && flags.includes(before));
  if (option === undefined || word === '' || wanted(option.kind, word) !== null || isProgram(word, path)) return;
  const message = `"${word}" behind ${before} stands where the program is expected`;
  throw usageError(message, `write ${before}=${word}, or -- before a program of that name`);
}

const launchers = new Set(
  'mpirun mpiexec mpiexec.hydra orterun prterun srun torchrun deepspeed horovodrun jsrun aprun ncclrun'.split(' '),
);

/** Lines about a program that starts ranks itself, and about a file in the place of hosts. `isManaged`: inside an allocation. */
export function programNotes(
  settings: Settings<JobOptionName>,
  words: readonly string[],
  isManaged: boolean,
): readonly string[] {
  return [...launcherInRanks(settings, words, isManaged), ...quotedLine(words), ...fileAsHost(settings.list('host'))];
}

function quotedLine([program = '']: readonly string[]): string[] {
  const [first = '', second] = program.split(' ');
  if (second === undefined || !/^[A-Za-z0-9_.-]+$/u.test(first) || existsSync(program)) return [];
  return [`the program is "${program}", one word with blanks: without its quotes it is ${first} with arguments`];
}

/** A launcher once on each host is as usual; several on one host compete for its GPUs and ports. */
function launcherInRanks(settings: Settings<JobOptionName>, words: readonly string[], isManaged: boolean): string[] {
  const name = launcherOf(words);
  if (name === null) return [];
  const perHost = settings.text('npernode');
  const isOneHost = !isManaged && settings.setting('host') === null && settings.setting('hostfile') === null;
  const areSeveral = perHost === null ? isOneHost && settings.integer('np') !== 1 : perHost !== '1';
  if (!areSeveral) return [];
  return [`${name} starts processes itself: each rank is a job of its own; write ncclrun in place of ${name}, or -N 1`];
}

function launcherOf([program = '', ...rest]: readonly string[]): string | null {
  const name = basename(program);
  if (launchers.has(name)) return name;
  if (name === 'accelerate' && rest[0] === 'launch') return 'accelerate launch';
  const [option, module = ''] = rest;
  const isModule =
    /^python[0-9.]*$/u.test(name) && option === '-m' && /^torch\.distributed\.(run|launch)$/u.test(module);
  return isModule ? `python -m ${module}` : null;
}

function fileAsHost(hosts: readonly string[]): string[] {
  return hosts
    .filter(
      (text) => /^[^,[\]:^+-][^,[\]:]*$/u.test(text) && statSync(text, { throwIfNoEntry: false })?.isFile() === true,
    )
    .map((text) => `-H ${text} is a host of that name; the file ${text} is --hostfile ${text}`);
}
