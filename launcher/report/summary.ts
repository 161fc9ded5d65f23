/** What people read when a job has failed: the primary failure first, then what followed from it. */
import { printable } from '../../control/printable.ts';
import type { Failure } from '../model/failure.ts';
import type { JobResult } from '../model/types.ts';
import type { Paint } from '../text/colour.ts';
import { failureText } from './failure-text.ts';
import { shortRanges, shortRanksText } from '../text/counted.ts';

/** Maximum of failures shown one by one beyond the primary one. */
const shownFailures = 8;

/** One line of ours, as it stands on stderr, whatever others have put into `text`. */
export function ourLine(text: string, paint: Paint): string {
  return `${paint('dim', 'ncclrun:')} ${printable(text)}\n`;
}

/**
 * The sentence, its location and the remedy, each on a line of its own. Empty for a broken pipe, which ends quietly. `trimmed`: the failure without what is
 * in sight already; the remedy may follow from that.
 */
export function failureBlock(failure: Failure, paint: Paint, trimmed = failure): string {
  if (failure.type === 'interrupt' && failure.signal === 'SIGPIPE') return '';
  const { sentence, details } = failureText(trimmed);
  const { remedy } = failureText(failure);
  const head = `${paint('red', 'ncclrun:')} ${paint('bold', printable(sentence))}\n`;
  const body = details.map((line) => `    ${printable(line)}\n`).join('');
  if (remedy === null) return head + body;
  // A remedy may have several lines. Those after the first stand under it, so that none looks like a line of its own.
  const next = remedy.split('\n').map(printable).join('\n        ');
  return `${head}${body}  ${paint('yellow', 'next:')} ${next}\n`;
}

/** `shown` is the primary failure if it has been shown already, else null. */
export function resultSummary(result: JobResult, shown: Failure | null, paint: Paint): string {
  const [primary, ...others] = result.failures;
  if (primary === undefined) return '';
  if (primary.type === 'interrupt' && primary.signal === 'SIGPIPE') return '';
  let text = shown === primary || isSame(shown, primary) ? '' : failureBlock(primary, paint);
  const groups = alike(primary, others);
  for (const line of groups.slice(0, shownFailures)) text += ourLine(line, paint);
  if (groups.length > shownFailures)
    text += ourLine(`and ${groups.length - shownFailures} failures of other kinds`, paint);
  return text + endedSummary(result, primary, paint);
}

/** A line per kind of failure: a program that is missing is missing for every rank. */
function alike(primary: Failure, others: readonly Failure[]): string[] {
  const groups = new Map<string, { first: Failure; ranks: number[] }>([
    [keyOf(primary), { first: primary, ranks: [] }],
  ]);
  for (const failure of others) {
    const kind = keyOf(failure);
    const group = groups.get(kind) ?? { first: failure, ranks: [] };
    groups.set(kind, group);
    if ('rank' in failure && failure !== group.first) group.ranks.push(failure.rank);
  }
  return Array.from(groups.values())
    .map(({ first, ranks }) => {
      const too = ranks.length === 0 ? '' : `the same for ${shortRanksText(ranks)}`;
      if (first === primary) return too;
      return `also: ${failureText(first).sentence}${too === '' ? '' : `; ${too}`}`;
    })
    .filter((line) => line !== '');
}

/** Equal for failures that differ only in the rank, its process, its GPU and its host. */
function keyOf(failure: Failure): string {
  return 'rank' in failure
    ? JSON.stringify({ ...failure, rank: 0, pid: 0, host: '', gpu: null, xids: [], remedy: null, stderrTail: [] })
    : JSON.stringify(failure);
}

function isSame(shown: Failure | null, primary: Failure): boolean {
  return shown !== null && JSON.stringify(shown) === JSON.stringify(primary);
}

function endedSummary(result: JobResult, primary: Failure, paint: Paint): string {
  const ended = result.ranks.filter((rank) => rank.endedByUs).map((rank) => rank.rank);
  if (ended.length === 0) return '';
  const concerns = 'rank' in primary ? 'other ' : '';
  const noun = ended.length === 1 ? 'rank was' : 'ranks were';
  return ourLine(`${ended.length} ${concerns}${noun} ended because of it: ${shortRanges(ended)}`, paint);
}
