/**
 * A forecast as a chart for a terminal: a line for each host, or for hosts with the same line; a letter for each job.
 *
 *                14:00                                     18:00
 *   node1        aaaaaaaaaaaaaabbbbbbbbbbbbbbbbbb...............
 *   node[2-4]    cccccccccccccccccccccccccccccccccccccccccccccc.
 */
import { counted } from '../../text/counted.ts';
import { foldNames } from '../../text/fold-names.ts';
import { wrapped } from '../../text/wrap.ts';
import { clockTime } from './clock-time.ts';
import type { ForecastTask } from './forecast.ts';

interface GanttChart {
  readonly tasks: readonly ForecastTask[];
  /** Names, in their order. */
  readonly hosts: readonly string[];
  readonly now: number;
  /** Of the terminal. */
  readonly columns?: number;
}

const COLUMNS = 80;
const MAX_NAME_COLUMNS = 24;
const IDLE = '.';
const LETTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789';
/** Of the jobs for which no letter is left. */
const OTHER = '#';

export function ganttText({ tasks, hosts, now, columns = COLUMNS }: GanttChart): string {
  const started = tasks.filter(({ startAt }) => startAt !== null);
  const letters = lettersOf(started);
  const nameColumns = Math.min(MAX_NAME_COLUMNS, Math.max(...hosts.map((name) => name.length), 'node[1-99]'.length));
  const width = Math.max(10, columns - nameColumns - 2);
  const end = endOf(started, now);
  const rows = rowsOf(started, { hosts, letters, now, end, width });
  const lines = [...rows].map(([row, names]) => `${nameText(names, nameColumns)}  ${row}`);
  const notStarted = tasks.filter(({ startAt }) => startAt === null).map(({ id }) => id);
  return [
    `${' '.repeat(nameColumns)}  ${axisText(now, end, width)}\n`,
    ...lines.map((line) => `${line}\n`),
    wrapped(legendOf(started, letters), '', columns),
    ...(notStarted.length === 0
      ? []
      : [wrapped(`no start is known: ${foldNames(notStarted).join(', ')}`, '', columns)]),
  ].join('');
}

/** `train` of `train[3]` */
function jobOf(id: string): string {
  return id.split('[', 1)[0] ?? id;
}

function lettersOf(tasks: readonly ForecastTask[]): Map<string, string> {
  const jobs = new Set(tasks.map(({ id }) => jobOf(id)));
  return new Map(Array.from(jobs, (job, index) => [job, LETTERS[index] ?? OTHER]));
}

/** The last time that is known, at least a second from now. */
function endOf(tasks: readonly ForecastTask[], now: number): number {
  return tasks.reduce((latest, { startAt, endAt }) => Math.max(latest, endAt ?? startAt ?? now), now + 1000);
}

interface Frame {
  readonly hosts: readonly string[];
  readonly letters: ReadonlyMap<string, string>;
  readonly now: number;
  readonly end: number;
  readonly width: number;
}

/** Lines with the hosts that have them. */
function rowsOf(tasks: readonly ForecastTask[], frame: Frame): Map<string, string[]> {
  const { hosts, now, end, width } = frame;
  const cell = (end - now) / width;
  /** By host and letter: how much of each cell it has. */
  const shares = new Map(hosts.map((host) => [host, new Map<string, Float64Array>()]));
  for (const { id, startAt, endAt, placement } of tasks) {
    const letter = frame.letters.get(jobOf(id)) ?? OTHER;
    const [from, to] = [((startAt ?? now) - now) / cell, ((endAt ?? end) - now) / cell];
    for (const { host, ranks } of placement ?? []) {
      const row = shares.get(host);
      const cells = row?.get(letter) ?? new Float64Array(width);
      row?.set(letter, cells);
      for (let index = Math.max(0, Math.floor(from)); index < Math.min(width, to); index++)
        cells[index] = (cells[index] ?? 0) + (Math.min(to, index + 1) - Math.max(from, index)) * ranks;
    }
  }
  const rows = new Map<string, string[]>();
  for (const [host, row] of shares) {
    const line = Array.from({ length: width }, (_, index) => letterAt(row, index)).join('');
    rows.set(line, [...(rows.get(line) ?? []), host]);
  }
  return rows;
}

/** The letter of the job that has most of a cell. */
function letterAt(row: ReadonlyMap<string, Float64Array>, index: number): string {
  let best = IDLE;
  let most = 0;
  for (const [letter, cells] of row) {
    const share = cells[index] ?? 0;
    if (share > most) [best, most] = [letter, share];
  }
  return best;
}

function nameText(names: readonly string[], columns: number): string {
  const text = foldNames(names).join(',');
  return text.length <= columns ? text.padEnd(columns) : `${text.slice(0, columns - 3)}...`;
}

function axisText(now: number, end: number, width: number): string {
  const right = clockTime(end, now);
  return clockTime(now, now).padEnd(width - right.length) + right;
}

/** `a train (4 tasks), b eval (1 task)` */
function legendOf(tasks: readonly ForecastTask[], letters: ReadonlyMap<string, string>): string {
  const counts = new Map<string, number>();
  for (const { id } of tasks) counts.set(jobOf(id), (counts.get(jobOf(id)) ?? 0) + 1);
  const entries = Array.from(letters, ([job, letter]) => `${letter} ${job} (${counted(counts.get(job) ?? 0, 'task')})`);
  return entries.length === 0 ? 'no task starts' : entries.join(', ');
}
