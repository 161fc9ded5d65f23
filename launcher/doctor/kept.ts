/** Runs of doctor that are kept, so that the next one can tell what is new. One file for each, in the user's cache directory. */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { hostReadings, type HostReadings } from '../../control/readings.ts';
import type { Examined } from './verdict.ts';
import { documentOf } from './verdict.ts';

/** Older ones are removed. */
const MAX_KEPT = 100;

const finding = v.object({
  check: v.string(),
  answer: v.picklist(['ok', 'note', 'warn', 'fail', 'unknown']),
  host: v.nullable(v.string()),
  subject: v.string(),
  message: v.string(),
  remedy: v.nullable(v.string()),
});
const way = v.object({
  from: v.string(),
  to: v.string(),
  rail: v.optional(v.number(), 0),
  rate: v.nullable(v.number()),
  latencyUs: v.nullable(v.number()),
  lost: v.nullable(v.number()),
  waited: v.number(),
  error: v.nullable(v.string()),
});
/** What --json prints, and of the kept ones the readings too. */
const keptRun = v.object({
  schemaVersion: v.literal(1),
  takenAt: v.number(),
  hosts: v.array(v.string()),
  findings: v.array(finding),
  ways: v.optional(v.array(way), []),
  readings: v.optional(v.record(v.string(), hostReadings), {}),
});
export type KeptRun = v.InferOutput<typeof keptRun>;

/** Throws the system's error. */
export function keepRun(directory: string, found: Examined, seconds: number, exitCode: number): void {
  const document = documentOf(found, seconds, exitCode);
  const readings: Record<string, HostReadings> = {};
  for (const one of found.read) readings[one.name] = one.readings;
  const time = new Date(document.takenAt).toISOString().replaceAll(':', '-');
  const path = join(directory, `${time}-${process.pid}.json`);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  writeFileSync(`${path}.new`, JSON.stringify({ ...document, readings }), { mode: 0o600 });
  renameSync(`${path}.new`, path);
  for (const name of namesIn(directory).slice(0, -MAX_KEPT)) rmSync(join(directory, name), { force: true });
}

/** Null: the text is no run of doctor. */
export function parseRun(text: string): KeptRun | null {
  try {
    const read = v.safeParse(keptRun, JSON.parse(text));
    return read.success ? read.output : null;
  } catch {
    return null;
  }
}

/** The newest run not after `time` that has a host of these; where all are later, the oldest. */
export function runBefore(directory: string, hosts: readonly string[], time: number): KeptRun | null {
  let oldest: KeptRun | null = null;
  for (const name of namesIn(directory).toReversed()) {
    const run = parseRun(readOr(join(directory, name)));
    if (run === null || !run.hosts.some((host) => hosts.includes(host))) continue;
    if (run.takenAt <= time) return run;
    oldest = run;
  }
  return oldest;
}

/** `last`, `2h`, `7d`, `2026-03-01`, `2026-03-01T12:00`: milliseconds since 1970; null: it is none of them. */
export function timeOf(when: string, now: number): number | null {
  if (when === 'last') return now;
  const [, count, unit = ''] = /^(\d+)([smhdw])$/u.exec(when) ?? [];
  const seconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 };
  if (count !== undefined) return now - Number(count) * (seconds[unit] ?? 0) * 1000;
  const time = /^\d{4}-\d\d-\d\d/u.test(when) ? Date.parse(when) : Number.NaN;
  return Number.isNaN(time) ? null : time;
}

/** The oldest first. */
function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory)
      .filter((name) => name.endsWith('.json'))
      .toSorted();
  } catch {
    return [];
  }
}

function readOr(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return ''; // another doctor has removed it
  }
}
