/** The operations of a page, unpacked. Times are in units of UNIT_NS after the first operation. */
import {
  NumberReader,
  OperationFlag,
  PAGE_STATES,
  type PageCommunicator,
  type PageData,
  UNIT_NS,
} from '../launcher/replay/page-format.ts';

export interface Part {
  readonly rank: number;
  readonly state: (typeof PAGE_STATES)[number];
  readonly start: number;
  /** Null: it has not ended, or nobody saw it. */
  readonly end: number | null;
  /** Rank that it waits for; null: not known. */
  readonly waitsFor: number | null;
}

export interface Operation {
  /** `12`, `g12.1` of a replayed graph. */
  readonly number: string;
  readonly call: string;
  readonly bytes: number;
  readonly begin: number;
  /** Of a message, ranks of the job; null: not known, or no message. */
  readonly from: number | null;
  readonly to: number | null;
  readonly isMessage: boolean;
  readonly differs: boolean;
  readonly missing: readonly number[];
  readonly last: number | null;
  readonly parts: readonly Part[];
  /** When the last rank came, of those that did: from then on data moves. */
  readonly arrived: number;
}

export interface Group {
  readonly about: PageCommunicator;
  readonly label: string;
  /** Ranks of the job, ascending: the rows. */
  readonly ranks: readonly number[];
  readonly operations: readonly Operation[];
}

export async function unpack(data: PageData): Promise<Group[]> {
  const packed = Uint8Array.from(atob(data.operations), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
  const reader = new NumberReader(new Uint8Array(await new Response(stream).arrayBuffer()));
  return data.communicators.map((about) => {
    const operations: Operation[] = [];
    const count = reader.take();
    let [begin, number] = [0, 0];
    for (let i = 0; i < count; i++) {
      const flags = reader.take();
      number += reader.takeSigned();
      const place = reader.take();
      const call = data.calls[reader.take()] ?? '';
      const bytes = reader.take();
      begin += reader.takeSigned();
      operations.push(operationOf(reader, flags, { number: numberText(flags, number, place), call, bytes, begin }));
    }
    const ranks = new Set(operations.flatMap(({ parts, missing }) => [...parts.map(({ rank }) => rank), ...missing]));
    const label = `${about.name ?? about.id}${about.epoch === 0 ? '' : ` (start ${about.epoch + 1})`}, ${about.size} ranks`;
    return { about, label, ranks: [...ranks].toSorted((one, other) => one - other), operations };
  });
}

function numberText(flags: number, number: number, place: number): string {
  return (flags & OperationFlag.replay) === 0 ? `${number}` : `g${number}${place === 0 ? '' : `.${place}`}`;
}

function operationOf(
  reader: NumberReader,
  flags: number,
  head: Pick<Operation, 'number' | 'call' | 'bytes' | 'begin'>,
): Operation {
  const isMessage = (flags & OperationFlag.message) !== 0;
  const optional = (): number | null => {
    const value = reader.take();
    return value === 0 ? null : value - 1;
  };
  const [from, to] = isMessage ? [optional(), optional()] : [null, null];
  const missing = ranksOf(reader);
  const last = optional();
  const parts = ranksOf(reader).map((rank): Part => {
    const state = PAGE_STATES[reader.take()] ?? 'called';
    const start = head.begin + reader.takeSigned();
    const duration = optional();
    return { rank, state, start, end: duration === null ? null : start + duration, waitsFor: optional() };
  });
  const came = parts.filter(({ state }) => state !== 'cancelled' && state !== 'queued');
  const arrived = missing.length > 0 ? Infinity : came.reduce((late, { start }) => Math.max(late, start), head.begin);
  const differs = (flags & OperationFlag.differs) !== 0;
  return { ...head, from, to, isMessage, differs, missing, last, parts, arrived };
}

function ranksOf(reader: NumberReader): number[] {
  const ranks: number[] = [];
  const count = reader.take();
  let before = -1;
  for (let i = 0; i < count; i++) {
    before += reader.takeSigned() + 1;
    ranks.push(before);
  }
  return ranks;
}

function isOpen({ state }: Part): boolean {
  return state === 'running' || state === 'failed';
}

/** Index of the first operation that not all ranks called alike, or did not end; null: there is none. */
export function firstDifference({ operations }: Group): number | null {
  const found = operations.findIndex(
    ({ differs, missing, parts }) => differs || missing.length > 0 || parts.some(isOpen),
  );
  return found === -1 ? null : found;
}

/** `0-3,7` */
export function rangesText(ranks: readonly number[]): string {
  const texts: string[] = [];
  for (let i = 0; i < ranks.length; ) {
    let end = i;
    while (ranks[end + 1] === (ranks[end] ?? 0) + 1) end++;
    texts.push(end === i ? `${ranks[i]}` : `${ranks[i]}-${ranks[end]}`);
    i = end + 1;
  }
  return texts.join(',');
}

export function timeText(units: number): string {
  const ns = units * UNIT_NS;
  const size = Math.abs(ns);
  if (size < 1e6) return `${(ns / 1e3).toFixed(size < 1e4 ? 1 : 0)} µs`;
  if (size < 1e9) return `${(ns / 1e6).toFixed(size < 1e7 ? 2 : 1)} ms`;
  return `${(ns / 1e9).toFixed(size < 1e10 ? 3 : 1)} s`;
}

export function bytesText(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let [value, unit] = [bytes, 0];
  while (value >= 1024 && unit + 1 < units.length) [value, unit] = [value / 1024, unit + 1];
  return `${Number.isInteger(value) ? value : value.toFixed(1)} ${units[unit]}`;
}
