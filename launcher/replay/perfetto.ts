/**
 * Recorded operations as a trace that Perfetto and chrome://tracing open: a process for each host, and of each rank a track for each communicator.
 * Slices of a track must nest, so what overlaps another one there and messages, which do, are asynchronous slices with ids. A collective is split
 * into the wait for the last rank and the transfer; an arrow leads from the rank that came last to the others.
 */
import { bytesOf, callText, isMessage, stateOf, variantText } from './call.ts';
import { beginOf, numberText, type Part, type ReplayedCommunicator, type ReplayedOperation } from './operations.ts';
import type { Replay } from './read-file.ts';

/** An event of the trace event format; times in microseconds. */
type TraceEvent = Readonly<Record<string, string | number | Readonly<Record<string, string | number | boolean>>>>;

/** A trace of more does not open in a browser. */
const MAX_SLICES = 200_000;
/** Arrows to more ranks than these hide what they are about. */
const MAX_ARROWS = 64;

interface Slice {
  readonly part: Part;
  readonly operation: ReplayedOperation;
  readonly communicator: ReplayedCommunicator;
  readonly from: number;
  readonly to: number;
  /** When the last rank came; null: the operation is none of all ranks, or somebody is missing. */
  readonly arrived: number | null;
  readonly pid: number;
  readonly tid: number;
}

interface Trace {
  readonly text: string;
  /** The oldest operations, where there are too many. */
  readonly omitted: number;
}

export function perfettoTrace(
  replay: Replay,
  communicators: readonly ReplayedCommunicator[],
  takenNs: number,
  maxSlices = MAX_SLICES,
): Trace {
  const hosts = [...new Set(replay.ranks.map(({ host }) => host))];
  const hostOf = new Map(replay.ranks.map(({ rank, host }) => [rank, hosts.indexOf(host)]));
  const { kept, omitted } = newest(communicators, maxSlices);
  const count = communicators.length;
  const slices = kept.flatMap(({ operation, index, communicator }) => {
    const arrived = arrivalOf(operation);
    return operation.parts.map((part) => ({
      ...spanOf(part, takenNs),
      part,
      operation,
      communicator,
      arrived,
      pid: hostOf.get(part.rank) ?? 0,
      tid: part.rank * count + index + 1,
    }));
  });
  const events: TraceEvent[] = [
    ...hosts.flatMap((host, pid) => [metadata('process_name', pid, 0, host), sortIndex('process', pid, 0, pid)]),
    ...tracksOf(replay, communicators, slices),
  ];
  let lastId = 0;
  for (const own of Map.groupBy(slices, ({ tid }) => tid).values()) {
    const open: number[] = [];
    for (const slice of own.toSorted((one, other) => one.from - other.from || other.to - one.to)) {
      while ((open.at(-1) ?? Number.POSITIVE_INFINITY) <= slice.from) open.pop();
      const nests = !isMessage(slice.part.entry) && slice.to <= (open.at(-1) ?? Number.POSITIVE_INFINITY);
      if (nests) open.push(slice.to);
      events.push(...eventsOf(slice, nests ? null : (lastId += 1)));
    }
  }
  for (const event of flowsOf(slices)) events.push(event); // too many to be arguments of one call
  return { text: `${JSON.stringify({ displayTimeUnit: 'ns', traceEvents: events })}\n`, omitted };
}

/** Those called last, as far as their slices fit. */
function newest(communicators: readonly ReplayedCommunicator[], maxSlices: number) {
  const all = communicators
    .flatMap((communicator, index) => communicator.operations.map((operation) => ({ operation, index, communicator })))
    .toSorted((one, other) => beginOf(other.operation) - beginOf(one.operation));
  let slices = 0;
  const tooMany = all.findIndex(({ operation }) => (slices += operation.parts.length) > maxSlices);
  const kept = tooMany === -1 ? all : all.slice(0, tooMany);
  return { kept, omitted: all.length - kept.length };
}

function tracksOf(
  { ranks }: Replay,
  communicators: readonly ReplayedCommunicator[],
  slices: readonly Slice[],
): TraceEvent[] {
  const gpus = new Map(ranks.map(({ rank, gpu }) => [rank, gpu]));
  const tracks = new Map(slices.map((slice) => [slice.tid, slice]));
  const sorted = Array.from(tracks.values()).toSorted((one, other) => one.tid - other.tid);
  return sorted.flatMap(({ part: { rank }, communicator, pid, tid }) => {
    const gpu = gpus.get(rank) ?? null;
    const name = `rank ${rank}${gpu === null ? '' : `, GPU ${gpu.index}`}`;
    const which = communicators.length > 1 ? `, ${communicator.name ?? communicator.id}` : '';
    return [metadata('thread_name', pid, tid, `${name}${which}`), sortIndex('thread', pid, tid, tid)];
  });
}

/** What has not ended lasts until the recorder was read. Of what nobody saw only the call is known. */
function spanOf({ enqueuedNs, startedNs, endedNs, entry }: Part, takenNs: number): { from: number; to: number } {
  const from = startedNs ?? enqueuedNs;
  const isOpen = endedNs === null && stateOf(entry) === 'running';
  return { from, to: Math.max(from, endedNs ?? (isOpen ? takenNs : from)) };
}

function arrivalOf({ from, parts, missing, unknown }: ReplayedOperation): number | null {
  if (from !== null || parts.length < 2 || missing.length > 0 || unknown > 0) return null;
  const begun = parts.flatMap(({ startedNs }) => startedNs ?? []);
  return begun.length === parts.length ? begun.reduce((late, time) => Math.max(late, time), 0) : null;
}

function metadata(name: string, pid: number, tid: number, value: string): TraceEvent {
  return { ph: 'M', name, pid, tid, args: { name: value } };
}

function sortIndex(what: 'process' | 'thread', pid: number, tid: number, value: number): TraceEvent {
  return { ph: 'M', name: `${what}_sort_index`, pid, tid, args: { sort_index: value } };
}

function eventsOf(
  { part, operation, communicator, from, to, arrived, pid, tid }: Slice,
  id: number | null,
): TraceEvent[] {
  const { entry, rank } = part;
  const common = { name: callText(entry), cat: 'operation', pid, tid };
  const bytes = bytesOf(entry);
  const args = {
    communicator: communicator.name ?? communicator.id,
    number: numberText(operation),
    bytes,
    variant: variantText(entry),
    state: stateOf(entry),
    isLast: operation.last === rank,
    ...(part.endedNs !== null &&
      to > from &&
      bytes > 0 && { gigabytesPerSecond: Number((bytes / (to - from)).toFixed(3)) }),
  };
  if (id !== null)
    return [
      { ...common, ph: 'b', id, ts: from / 1000, args },
      { ...common, ph: 'e', id, ts: to / 1000 },
    ];
  const whole = { ...common, ph: 'X', ts: from / 1000, dur: (to - from) / 1000, args };
  if (arrived === null || part.endedNs === null || arrived <= from || arrived >= to) return [whole];
  const piece = { cat: 'phase', ph: 'X', pid, tid };
  return [
    whole,
    { ...piece, name: 'wait', ts: from / 1000, dur: (arrived - from) / 1000 },
    { ...piece, name: 'transfer', ts: arrived / 1000, dur: (to - arrived) / 1000 },
  ];
}

/** From the rank that came last to each that waited for it: an arrow, which ends in the slice around it. */
function flowsOf(slices: readonly Slice[]): TraceEvent[] {
  let lastId = 0;
  return Array.from(Map.groupBy(slices, ({ operation }) => operation).values()).flatMap((own) => {
    const source = own.find(({ operation, part, arrived }) => arrived !== null && operation.last === part.rank);
    if (source === undefined || own.length > MAX_ARROWS) return [];
    return own.flatMap((slice) => {
      if (slice.arrived === null || slice.to < slice.arrived || slice.from >= slice.arrived) return [];
      const common = { name: 'came last', cat: 'arrival', id: (lastId += 1) };
      return [
        { ...common, ph: 's', pid: source.pid, tid: source.tid, ts: slice.arrived / 1000 },
        { ...common, ph: 'f', bp: 'e', pid: slice.pid, tid: slice.tid, ts: slice.arrived / 1000 },
      ];
    });
  });
}

/** The latest moment that any rank recorded. */
export function latestNs(communicators: readonly ReplayedCommunicator[]): number {
  return communicators
    .flatMap(({ operations }) => operations.flatMap(({ parts }) => parts))
    .reduce((latest, { enqueuedNs, startedNs, endedNs }) => Math.max(latest, endedNs ?? startedNs ?? enqueuedNs), 0);
}
