/** The status of a job for people, in 80 columns. */
import { printableLine } from '../../control/printable.ts';
import type { CommunicatorGroup, ConditionShare, JobStatus, Outlier } from '../model/status.ts';
import { counted } from '../text/counted.ts';
import { wrapped } from '../text/wrap.ts';
import type { RunningJob } from './find.ts';
import { durationText } from './text.ts';

const COLUMNS = 80;
const INDENT = '  ';
/** Hosts of an outlier that are named. */
const MAX_HOSTS = 3;

export function statusText({ jobId, startedAt }: RunningJob, status: JobStatus): string {
  const { ranks, hosts, silent, outliers, groups, without, verdicts, takenAt } = status;
  const size = `${counted(ranks, 'rank')} on ${counted(hosts, 'host')}`;
  const lines = [`job ${printableLine(jobId)}: ${size}, for ${durationText((takenAt - startedAt) / 1000)}`];
  const add = (title: string, entries: readonly string[]): void => {
    if (entries.length > 0)
      lines.push(title, ...entries.map((entry) => wrapped(printableLine(entry), INDENT, COLUMNS).trimEnd()));
  };
  add(
    'no answer from',
    silent.map((host) => host),
  );
  add('outliers', outliers.map(outlierText));
  add('communicators', [...groups.map(groupText), ...withoutText(without, groups.length)]);
  add(
    'verdicts',
    verdicts.map(({ kind, message }) => `${kind}: ${message}`),
  );
  return `${lines.join('\n')}\n`;
}

function withoutText(without: number, groups: number): string[] {
  if (without === 0) return groups === 0 ? ['none'] : [];
  return [`${counted(without, 'rank')} without a communicator`];
}

function outlierText({
  ranks,
  hosts,
  communicator,
  condition,
  seconds,
  operation,
  others,
  collective,
}: Outlier): string {
  const who = /[-,]/.test(ranks) ? `ranks ${ranks}` : `rank ${ranks}`;
  const where = hosts.length > MAX_HOSTS ? `${hosts.length} hosts` : hosts.join(', ');
  const since = seconds === 0 ? '' : ` for ${seconds} s`;
  const last = operation === null ? 'before the first operation' : `at ${collective ?? 'operation'} #${operation}`;
  const rest = others === null || others === operation ? '' : ` (most ranks: #${others})`;
  return `${who} on ${where}: ${condition}${since} ${last}${rest} of ${communicator}`;
}

/** `4 communicators of 8 ranks on 2 hosts: running, allReduce #120049-120051` */
function groupText({ count, ids, size, hosts, shares, operations }: CommunicatorGroup): string {
  const head = `${counted(count, 'communicator')} of ${counted(size, 'rank')} on ${counted(hosts, 'host')}`;
  const conditions = shares.map((share) => shareText(share, shares.length > 1)).join(', ');
  const name = count === 1 ? ` (${ids.join('')})` : '';
  if (operations === null) return `${head}: ${conditions}, no operation yet${name}`;
  const { lowest, highest, collective } = operations;
  const numbers = lowest === highest ? `#${highest}` : `#${lowest}-${highest}`;
  return `${head}: ${conditions}, ${collective} ${numbers}${name}`;
}

function shareText({ condition, count, seconds }: ConditionShare, isCounted: boolean): string {
  const since = seconds === 0 ? '' : ` for ${seconds} s`;
  return isCounted ? `${count} ${condition}${since}` : `${condition}${since}`;
}
