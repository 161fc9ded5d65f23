/** Slurm's --signal: `USR1@120`. */
import { signalName, signalNames } from '../../model/signal-number.ts';
import { nearest } from '../../text/nearest.ts';
import type { JobSpec } from '../model/spec.ts';
import { mistakeIn, type JobSource } from './job-source.ts';

/** sbatch's. */
const defaultSecondsBefore = 60;

/** Throws a FailureError (usage) for an unknown signal, or one that would come ahead of the start. */
export function readSignal(job: JobSource, timeLimitSeconds: number | null): JobSpec['signal'] {
  const { signal } = job.raw;
  if (signal === undefined) return null;
  const [, word = '', seconds] = /^(?:B:)?([^@]*)(?:@([0-9]+))?$/u.exec(signal) ?? [];
  const secondsBefore = seconds === undefined ? defaultSecondsBefore : Number(seconds);
  const name = nameOf(word);
  if (name === null) {
    const guess = nearest(word.toUpperCase().replace(/^SIG/u, ''), signalNames().map(bareName));
    const remedy = guess === null ? 'write a signal and seconds: USR1@120' : `did you mean ${guess}@${secondsBefore}?`;
    throw mistakeIn(job, 'signal', `"${word}" is no signal`, remedy);
  }
  if (timeLimitSeconds === null) {
    throw mistakeIn(
      job,
      'signal',
      'the signal comes ahead of a time limit, and the job has none',
      'add time_limit: 12h',
    );
  }
  if (secondsBefore < timeLimitSeconds) return { name, secondsBefore };
  const message = `the signal comes ${secondsBefore} s ahead of a time limit of ${timeLimitSeconds} s`;
  throw mistakeIn(job, 'signal', message, 'write fewer seconds than the time limit has');
}

function nameOf(word: string): NodeJS.Signals | null {
  if (/^[0-9]{1,3}$/u.test(word)) return signalName(Number(word));
  const bare = bareName(word.toUpperCase());
  return signalNames().find((name) => bareName(name) === bare) ?? null;
}

function bareName(name: string): string {
  return name.replace(/^SIG/u, '');
}
