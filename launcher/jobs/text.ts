/** Running jobs for people. */
import { printableLine } from '../../control/printable.ts';
import { foldNames } from '../text/fold-names.ts';
import { counted, ranksText } from '../text/counted.ts';
import type { RunningJob } from './find.ts';

/** Hosts of a job that are listed one by one. */
const MAX_HOSTS = 16;
const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export function jobsText(jobs: readonly RunningJob[], now: number): string {
  if (jobs.length === 0) return 'no job of yours runs from this machine\n';
  return jobs.map((job) => jobText(job, now)).join('\n');
}

function jobText({ jobId, pid, startedAt, programs, hosts }: RunningJob, now: number): string {
  const ranks = hosts.reduce((sum, host) => sum + host.ranks.length, 0);
  const size = `${counted(ranks, 'rank')} on ${counted(hosts.length, 'host')}`;
  const head = `job ${printableLine(jobId)}: ${size}, for ${durationText((now - startedAt) / 1000)}, process ${pid}`;
  const commands = programs.map((argv) => `  ${printableLine(argv.join(' '))}`);
  const shown = hosts.slice(0, MAX_HOSTS).map(({ name, ranks: own }) => ({ name: printableLine(name), ranks: own }));
  const width = Math.max(...shown.map(({ name }) => name.length));
  const rows = shown.map((host) => `  ${host.name.padEnd(width)}   ${ranksText(host.ranks)}`);
  const rest = hosts.slice(MAX_HOSTS).map(({ name }) => name);
  const more = rest.length === 0 ? [] : [`  and ${rest.length} more: ${printableLine(foldNames(rest).join(','))}`];
  return `${[head, ...commands, ...rows, ...more].join('\n')}\n`;
}

export function durationText(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < MINUTE) return `${whole} s`;
  if (whole < HOUR) return `${Math.floor(whole / MINUTE)} min`;
  if (whole < DAY) return `${Math.floor(whole / HOUR)} h ${Math.floor((whole % HOUR) / MINUTE)} min`;
  return `${Math.floor(whole / DAY)} d ${Math.floor((whole % DAY) / HOUR)} h`;
}
