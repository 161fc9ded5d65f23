/** --output and --output-filename → the files that the ranks' output goes to, and what else --output may ask for. */
import type { OutputPattern, PatternPart } from '../model/output-pattern.ts';
import { nearest } from '../text/nearest.ts';
import { usageError } from '../model/usage-error.ts';

interface OutputRequest {
  readonly files: readonly OutputPattern[];
  /** False: the files are enough (`:nocopy`). */
  readonly shown: boolean;
  /** Open MPI 5's spellings: `--output tag,timestamp,merge`. */
  readonly tag: boolean;
  readonly timestamp: boolean;
  readonly merge: boolean;
}

/** Suffix of a file name that makes the file the only destination of the output. */
const nocopy = ':nocopy';
const words = ['tag', 'timestamp', 'merge', 'dir=', 'file='] as const;
const fields: Readonly<Record<string, PatternPart>> = {
  '%r': { field: 'rank' },
  '%h': { field: 'host' },
  '%n': { field: 'ranks' },
  '%t': { field: 'stream' },
  '%%': { text: '%' },
};

/** Throws a FailureError (usage) for what cannot be meant. */
export function outputRequest(given: readonly string[], filename: string | null): OutputRequest {
  const request = { files: new Array<OutputPattern>(), shown: true, tag: false, timestamp: false, merge: false };
  const add = (option: string, text: string, parts: (path: string) => PatternPart[]): void => {
    const alone = text.toLowerCase().endsWith(nocopy);
    const path = alone ? text.slice(0, -nocopy.length) : text;
    if (path === '') throw usageError(`${option}${text} names no file`, 'write --output dir=D or --output file=F');
    if (alone) request.shown = false;
    request.files.push({ given: option + text, parts: parts(path) });
  };
  for (const text of given) {
    let rest = text;
    while (rest !== '') {
      const target = /^(dir|file)=(.*)$/su.exec(rest);
      if (target !== null) {
        const [, kind, path = ''] = target;
        const option = `--output ${kind}=`;
        if (kind === 'file') add(option, path, (name) => parsePattern(name, option + path));
        else add(option, path, (name) => parsePattern(`${name}/rank.%r.%t`, option + path));
        break;
      }
      const [, word = '', more = ''] = /^([^,]*),?(.*)$/su.exec(rest) ?? [];
      if (word === 'tag') request.tag = true;
      else if (word === 'timestamp') request.timestamp = true;
      else if (word === 'merge' || word === 'merge-stderr-to-stdout') request.merge = true;
      else throw unknownWord(text, word);
      rest = more;
    }
  }
  if (filename !== null)
    add('--output-filename ', filename, (path) => [
      { text: `${path}/1/rank.` },
      { field: 'padded-rank' },
      { text: '/' },
      { field: 'stream' },
    ]);
  return request;
}

function unknownWord(given: string, word: string) {
  const guess = nearest(word, words);
  const hint = guess === null ? '' : `; did you mean ${guess}?`;
  return usageError(
    `--output is "${given}"${hint}`,
    'dir=DIR or file=FILE is wanted (or tag, timestamp, merge); see ncclrun --help',
  );
}

function parsePattern(text: string, given: string): PatternPart[] {
  return text.split(/(%.?)/su).flatMap((piece) => {
    if (!piece.startsWith('%')) return piece === '' ? [] : [{ text: piece }];
    const part = fields[piece];
    if (part !== undefined) return [part];
    throw usageError(
      `${given}: "${piece}" has no meaning in a file's name`,
      '%r is the rank, %h its host, %n the number of ranks, %t stdout or stderr, %% a percent sign',
    );
  });
}
