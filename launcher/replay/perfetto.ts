/**
 * Recorded operations as a trace that Perfetto and chrome://tracing open: a process for each host, a thread for each rank. Slices of one thread must
 * nest, so what overlaps another slice of its rank, as messages of one group do, becomes an asynchronous slice with an id.
 */
import { bytesOf, callText, isMessage, stateOf, variantText } from './call.ts';
import type { Part, ReplayedCommunicator, ReplayedOperation } from './operations.ts';
import type { Replay } from './read-file.ts';

/** An event of the trace event format; times in microseconds. */
type TraceEvent = Readonly<Record<string, string | number | Readonly<Record<string, string | number | boolean>>>>;

interface Slice {
  readonly part: Part;
  readonly operation: ReplayedOperation;
  readonly communicator: ReplayedCommunicator;
  readonly from: number;
  readonly to: number;
}

export function perfettoTrace(replay: Replay, communicators: readonly ReplayedCommunicator[], takenNs: number): string {
  const hosts = [...new Set(replay.ranks.map(({ host }) => host))];
  const hostOf = new Map(replay.ranks.map(({ rank, host }) => [rank, hosts.indexOf(host)]));
  const events: TraceEvent[] = [
    ...hosts.map((host, pid) => metadata('process_name', pid, 0, host)),
    ...replay.ranks.map(({ rank, host, gpu }) =>
      metadata(
        'thread_name',
        hosts.indexOf(host),
        rank,
        gpu === null ? `rank ${rank}` : `rank ${rank}, GPU ${gpu.index}`,
      ),
    ),
  ];
  const slices = communicators.flatMap((communicator) =>
    communicator.operations.flatMap((operation) =>
      operation.parts.map((part) => ({ part, operation, communicator, ...spanOf(part, takenNs) })),
    ),
  );
  const byRank = Map.groupBy(slices, ({ part }) => part.rank);
  let lastId = 0;
  for (const own of byRank.values()) {
    const open: number[] = [];
    for (const slice of own.toSorted((one, other) => one.from - other.from || other.to - one.to)) {
      while ((open.at(-1) ?? Number.POSITIVE_INFINITY) <= slice.from) open.pop();
      const nests = !isMessage(slice.part.entry) && slice.to <= (open.at(-1) ?? Number.POSITIVE_INFINITY);
      if (nests) open.push(slice.to);
      events.push(...eventsOf(slice, hostOf.get(slice.part.rank) ?? 0, nests ? null : (lastId += 1)));
    }
  }
  return `${JSON.stringify({ displayTimeUnit: 'ns', traceEvents: events })}\n`;
}

/** What has not ended lasts until the recorder was read. On GPUs only the call is known. */
function spanOf({ enqueuedNs, startedNs, endedNs, entry }: Part, takenNs: number): { from: number; to: number } {
  const from = startedNs ?? enqueuedNs;
  const isOpen = endedNs === null && stateOf(entry) === 'running';
  return { from, to: Math.max(from, endedNs ?? (isOpen ? takenNs : from)) };
}

function metadata(name: string, pid: number, tid: number, value: string): TraceEvent {
  return { ph: 'M', name, pid, tid, args: { name: value } };
}

function eventsOf({ part, operation, communicator, from, to }: Slice, pid: number, id: number | null): TraceEvent[] {
  const { entry, rank } = part;
  const common = { name: callText(entry), cat: 'operation', pid, tid: rank };
  const args = {
    communicator: communicator.name ?? communicator.id,
    number: operation.number,
    bytes: bytesOf(entry),
    variant: variantText(entry),
    state: stateOf(entry),
    isLast: operation.last === rank,
  };
  if (id === null) return [{ ...common, ph: 'X', ts: from / 1000, dur: (to - from) / 1000, args }];
  return [
    { ...common, ph: 'b', id, ts: from / 1000, args },
    { ...common, ph: 'e', id, ts: to / 1000 },
  ];
}

/** The latest moment that any rank recorded. */
export function latestNs(communicators: readonly ReplayedCommunicator[]): number {
  const times = communicators.flatMap(({ operations }) =>
    operations.flatMap(({ parts }) =>
      parts.map(({ enqueuedNs, startedNs, endedNs }) => endedNs ?? startedNs ?? enqueuedNs),
    ),
  );
  return times.reduce((latest, time) => Math.max(latest, time), 0);
}
