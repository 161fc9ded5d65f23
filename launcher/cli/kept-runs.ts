/** Where doctor keeps its runs, and the one that --since names. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { cacheDirectory } from '../../control/cache-directory.ts';
import { messageOf } from '../../control/message-of.ts';
import { changesBetween, type Change } from '../doctor/compare.ts';
import { keepRun, parseRun, runBefore, timeOf, type KeptRun } from '../doctor/kept.ts';
import type { Examined } from '../doctor/verdict.ts';
import { usageError } from '../model/usage-error.ts';
import type { Settings } from './settings.ts';

type Baseline = { readonly run: KeptRun } | { readonly time: number };

interface Since {
  readonly takenAt: number;
  readonly changes: readonly Change[];
}

/** Returns why it could not, if anything. A user without a home directory, or with a full one, has nothing to compare with next time. */
export function keep(found: Examined, seconds: number, exitCode: number): string[] {
  const directory = keptIn();
  if (directory === null) return [];
  try {
    keepRun(directory, found, seconds, exitCode);
    return [];
  } catch (error) {
    return [`the run is not kept for --since: ${messageOf(error)}`];
  }
}

/** What --since names: a run, or the time of one. Null: nobody asks. Throws a FailureError (usage). */
export function baselineOf(settings: Settings<'since'>): Baseline | null {
  const when = settings.text('since');
  if (when === null) return null;
  const time = timeOf(when, Date.now());
  return time === null ? { run: runInFile(when) } : { time };
}

/** Null: no earlier run on these hosts is kept. */
export function sinceOf(baseline: Baseline, found: Examined): Since | null {
  const before = 'run' in baseline ? baseline.run : keptRun(baseline.time, found.hosts);
  if (before === null) return null;
  const readings = Object.fromEntries(found.read.map((one) => [one.name, one.readings]));
  const now = { hosts: [...found.hosts], findings: [...found.findings], ways: [...found.ways], readings };
  return { takenAt: before.takenAt, changes: changesBetween(before, now) };
}

function keptRun(time: number, hosts: readonly string[]): KeptRun | null {
  const directory = keptIn();
  return directory === null ? null : runBefore(directory, hosts, time);
}

function runInFile(path: string): KeptRun {
  const remedy = 'give last, 2h, 7d, a date such as 2026-03-01, or a file that ncclrun doctor --json has written';
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw usageError(`--since ${path} cannot be read: ${messageOf(error)}`, remedy);
  }
  const run = parseRun(text);
  if (run === null) throw usageError(`--since ${path} is no run of doctor`, remedy);
  return run;
}

function keptIn(): string | null {
  const cache = cacheDirectory(process.env);
  return cache === null ? null : join(cache, 'doctor');
}
