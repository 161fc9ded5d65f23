/** A settings file, or a setting in one, that ncclrun ignores. It fails no job: a line on stderr and `ncclrun config --explain` report it. */
import { printableLine } from '../../control/printable.ts';
import type { SourcePosition } from '../model/failure.ts';
import type { Option } from '../model/option.ts';
import type { ReadSettings } from './settings-file.ts';

export type Refusal =
  | { readonly kind: 'file'; readonly path: string; readonly reason: string; readonly remedy: string }
  /** Of a list single values are refused. */
  | {
      readonly kind: 'value';
      readonly option: Option;
      readonly value: string;
      readonly position: SourcePosition;
      readonly reason: string;
    };

/** A line for everything in these files that is not obeyed. */
export function refusalTexts(files: readonly ReadSettings[]): string[] {
  const userFile = files.find(({ file }) => file.kind === 'user')?.file.path ?? null;
  return files.flatMap(({ refusals }) => refusals.map((refusal) => refusalText(refusal, userFile)));
}

/** One line with what is ignored, the reason and the remedy. `userFile` is the user's own settings file, or null if there can be none. */
function refusalText(refusal: Refusal, userFile: string | null): string {
  const text =
    refusal.kind === 'file'
      ? `ignored ${shownPath(refusal.path)}: ${refusal.reason}; ${refusal.remedy}`
      : `ignored ${refusedValue({ name: refusal.option.name, value: refusal.value })} in ${placeOf(refusal.position)}: ${refusal.reason}; ${elsewhere(refusal.option, userFile)}`;
  return printableLine(text);
}

/** `"export": "LD_PRELOAD=./x.so"` */
export function refusedValue({ name, value }: { readonly name: string; readonly value: string }): string {
  return `"${name}": ${JSON.stringify(value)}`;
}

/** `ncclrun.json:2:9` */
export function placeOf({ source, line, column }: SourcePosition): string {
  return `${source}:${line}:${column}`;
}

function shownPath(path: string): string {
  return path.includes('/') ? path : `./${path}`;
}

/** `set it with --rsh, with NCCLRUN_RSH or in FILE` */
function elsewhere({ flags, environment }: Option, userFile: string | null): string {
  const given = [flags[0], environment[0]].flatMap((source) => (source === undefined ? [] : [`with ${source}`]));
  const sources = userFile === null ? given : [...given, `in ${userFile}`];
  const [last = '', ...others] = sources.toReversed();
  return `set it ${others.length === 0 ? last : `${others.toReversed().join(', ')} or ${last}`}`;
}
