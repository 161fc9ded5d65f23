/** Recorded operations for people: a table for each communicator. */
import { NO_PEER } from '../../control/messages/recorder.ts';
import { printableLine } from '../../control/printable.ts';
import { ranges } from '../text/ranges.ts';
import { bytesOf, callText, stateOf } from './call.ts';
import { beginOf, numberText, type Part, type ReplayedCommunicator, type ReplayedOperation } from './operations.ts';
import type { Replay } from './read-file.ts';

/** Up to so many ranks have columns of their own. */
const MAX_COLUMNS = 8;

interface Shown {
  /** Only communicators and operations of this rank. */
  readonly rank: number | null;
  /** Operations of each communicator, the last ones. */
  readonly last: number;
}

export function replayText(replay: Replay, communicators: readonly ReplayedCommunicator[], shown: Shown): string {
  const zero = communicators
    .flatMap(({ operations }) => operations.map(beginOf))
    .reduce((least, begin) => Math.min(least, begin), Number.POSITIVE_INFINITY); // too many to be arguments of one call
  const tables = communicators
    .filter(({ rankOf }) => shown.rank === null || [...rankOf.values()].includes(shown.rank))
    .map((communicator) => tableOf(communicator, shown, zero));
  return [headOf(replay), ...tables].join('\n');
}

function headOf({ takenAt, ranks, silent, omitted }: Replay): string {
  const error = Math.max(0, ...ranks.map(({ clock }) => clock?.errorNs ?? 0));
  const lines = [
    `recorded operations of ${ranks.length === 1 ? '1 process' : `${ranks.length} processes`}, read at ${new Date(takenAt).toISOString()}`,
    'at: seconds since the first operation here; of a rank: microseconds from then until it began, and until it ended',
  ];
  if (error > 0) lines.push(`times of different hosts may be wrong by ${micros(error)} us`);
  if (silent.length > 0) lines.push(`no answer from ${printableLine(silent.join(', '))}: their ranks are unknown`);
  if (omitted > 0) lines.push(`${omitted} more processes are left out`);
  if (ranks.some(({ entries }) => entries.some((entry) => stateOf(entry) === 'called')))
    lines.push('called: on a GPU, where nobody saw it begin and end');
  return `${lines.join('\n')}\n`;
}

function tableOf(communicator: ReplayedCommunicator, { rank, last }: Shown, zero: number): string {
  const { id, name, size, members, rankOf } = communicator;
  const ranks = rank === null ? [...rankOf.values()].toSorted((one, other) => one - other) : [rank];
  const all = communicator.operations.filter(
    ({ parts, missing }) => rank === null || missing.includes(rank) || parts.some((part) => part.rank === rank),
  );
  const operations = all.slice(-last);
  const own = ranks.length <= MAX_COLUMNS;
  const head = [
    'operation',
    'call',
    'bytes',
    'at',
    ...(own ? ranks.map((one) => `rank ${one}`) : ['began', 'ended']),
    'last',
    'missing',
  ];
  const rows = operations.map((one) => rowOf(one, communicator, own ? ranks : null, zero));
  const title = `communicator ${id}${name === null ? '' : ` (${printableLine(name)})`}, ${size} ranks, recorded by ${members}`;
  const left = all.length - operations.length;
  const more = left > 0 ? [`  ${left} earlier operations are not shown: --last`] : [];
  return `${[title, ...more, ...aligned([head, ...rows]).map((line) => `  ${line}`)].join('\n')}\n`;
}

function rowOf(
  operation: ReplayedOperation,
  { rankOf }: ReplayedCommunicator,
  ranks: readonly number[] | null,
  zero: number,
): string[] {
  const { from, to, parts, missing, last, differs } = operation;
  const [first] = parts;
  const begin = beginOf(operation);
  const calls = [...new Set(parts.map(({ entry }) => callText(entry)))];
  const sizes = [...new Set(parts.map(({ entry }) => bytesOf(entry)))];
  const pair = from === null || to === null ? '' : ` ${jobRank(rankOf, from)} to ${jobRank(rankOf, to)}`;
  const call =
    from === null
      ? calls.join(' / ')
      : `message${first === undefined ? '' : ` ${callText(first.entry).split(' ')[1] ?? ''}`}`;
  const cells =
    ranks === null
      ? [
          spread(
            parts.flatMap(({ startedNs }) => startedNs ?? []),
            begin,
          ),
          spread(
            parts.flatMap(({ endedNs }) => endedNs ?? []),
            begin,
          ),
        ]
      : ranks.map((rank) =>
          cellOf(
            parts.filter((part) => part.rank === rank),
            missing.includes(rank),
            begin,
            rankOf,
          ),
        );
  return [
    numberText(operation),
    `${call}${pair}${differs ? ' !' : ''}`,
    sizes.join(' / '),
    ((begin - zero) / 1e9).toFixed(6),
    ...cells,
    last === null ? '-' : `${last}`,
    missing.length > 0 ? ranges(missing) : '-',
  ];
}

/** `+3..+41`; `+3.. for 1` runs and waits for rank 1; of a failed one `+3..+41 failed for 1`. */
function cellOf(
  parts: readonly Part[],
  isMissing: boolean,
  begin: number,
  rankOf: ReadonlyMap<number, number>,
): string {
  if (parts.length === 0) return isMissing ? 'missing' : '';
  return parts
    .map(({ entry, enqueuedNs, startedNs, endedNs }) => {
      const state = stateOf(entry);
      const from = `+${micros((startedNs ?? enqueuedNs) - begin)}`;
      if (startedNs === null) return `${from} ${state}`;
      const until = endedNs === null ? '' : `+${micros(endedNs - begin)}`;
      const { lastPeer } = entry;
      const waits = state !== 'ended' && lastPeer !== NO_PEER ? ` for ${jobRank(rankOf, lastPeer)}` : '';
      return `${from}..${until}${state === 'failed' ? ' failed' : ''}${waits}`;
    })
    .join(' ');
}

function spread(times: readonly number[], begin: number): string {
  if (times.length === 0) return '-';
  return `+${micros(Math.min(...times) - begin)}..+${micros(Math.max(...times) - begin)} (${times.length})`;
}

function micros(ns: number): string {
  return `${Math.round(ns / 1000)}`;
}

function jobRank(rankOf: ReadonlyMap<number, number>, rank: number): string {
  const found = rankOf.get(rank);
  return found === undefined ? '?' : `${found}`;
}

function aligned(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}
