/** --forward-signals: which of the signals that ncclrun gets go on to the ranks. */
import { constants } from 'node:os';
import { type Forwardable, forwardable } from '../model/forwardable.ts';
import { nearest } from '../text/nearest.ts';
import { usageError } from '../model/usage-error.ts';

/** Names with or without SIG, in any case, or numbers, in one or several lists; `none`. Throws a FailureError (usage). */
export function forwardSignals(lists: readonly string[], source: string): readonly Forwardable[] {
  const words = lists.flatMap((list) => list.split(',')).map((word) => word.trim());
  const [first = ''] = words;
  if (words.length === 1 && /^none$/iu.test(first)) return [];
  return Array.from(new Set(words.map((word) => signalOf(word, source))));
}

function signalOf(word: string, source: string): Forwardable {
  const { signals } = constants;
  const number = /^[0-9]{1,3}$/u.test(word) ? Number(word) : null;
  const upper = word.toUpperCase();
  const given = upper.startsWith('SIG') ? upper : `SIG${upper}`;
  const wanted = number ?? Object.entries(signals).find(([name]) => name === given)?.[1] ?? null;
  const known = forwardable.find((name) => signals[name] === wanted);
  if (known !== undefined) return known;
  const name = Object.entries(signals).find(([, value]) => value === wanted)?.[0];
  if (name === undefined) throw usageError(`${source}: there is no signal "${word}"`, remedyOf(given));
  throw usageError(`${source}: ${name} cannot be passed on: ${reasonOf(name)}`, listed);
}

const listed = `these can: ${forwardable.map((name) => name.slice(3)).join(', ')}; or none`;

function remedyOf(given: string): string {
  const guess = nearest(given, [...forwardable, 'SIGNONE']);
  return guess === null ? listed : `did you mean ${guess === 'SIGNONE' ? 'none' : guess.slice(3)}? ${listed}`;
}

function reasonOf(name: string): string {
  if (name === 'SIGINT' || name === 'SIGTERM' || name === 'SIGHUP')
    return 'it ends the job, and the ranks get it anyway';
  if (name === 'SIGKILL' || name === 'SIGSTOP') return 'no program can see it coming';
  return 'it speaks of ncclrun’s own process';
}
