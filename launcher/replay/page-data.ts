/** A report as the page of `ncclrun replay --html` has it, and the page with it inside. */
import { deflateSync } from 'node:zlib';
import { failureText } from '../report/failure-text.ts';
import { bytesOf, callText, stateOf } from './call.ts';
import { beginOf, type Part, type ReplayedCommunicator, type ReplayedOperation } from './operations.ts';
import { NumberWriter, OperationFlag, PAGE_STATES, type PageData, type PageVerdict, UNIT_NS } from './page-format.ts';
import type { Replay } from './read-file.ts';

/** Operations of ranks in one page: at about 5 bytes each it stays below 5 MB. */
const MAX_PARTS = 450_000;
const MAX_VERDICTS = 8;
const MAX_DETAILS = 20;

export function pageData(
  replay: Replay,
  communicators: readonly ReplayedCommunicator[],
  { redact }: { readonly redact: boolean },
): PageData {
  const hosts = [...new Set([...replay.ranks.map(({ host }) => host), ...replay.silent])];
  const clockOf = new Map(replay.ranks.map(({ host, clock }) => [host, clock]));
  const { kept, omitted } = newest(communicators);
  const zero = kept
    .flatMap(({ operations }) => operations.map(beginOf))
    .reduce((least, begin) => Math.min(least, begin), Number.POSITIVE_INFINITY);
  const calls = new Map<string, number>();
  const { operations, last } = seriesOf(kept, Number.isFinite(zero) ? zero : 0, calls);
  const data: PageData = {
    version: 1,
    jobId: replay.jobId,
    takenAt: replay.takenAt,
    verdicts: verdictsOf(replay),
    hosts: hosts.map((host) => ({ host, clock: clockOf.get(host) ?? null })),
    ranks: [...new Map(replay.ranks.map((one) => [one.rank, one])).values()].map(({ rank, host, gpu }) => ({
      rank,
      host: hosts.indexOf(host),
      gpu: gpu?.index ?? null,
    })),
    communicators: kept.map(({ id, name, epoch, size, members }) => ({ id, name, epoch, size, members })),
    calls: [...calls.keys()],
    last,
    omitted,
    redacted: redact,
    operations,
  };
  return redact ? redacted(data, hosts) : data;
}

/** The template of dist/bundle with the data inside. Nothing in it can end the element that holds it. */
export function pageOf(template: string, data: PageData): string {
  const json = JSON.stringify(data).replaceAll('<', '\\u003c');
  const title = `ncclrun replay${data.jobId === null ? '' : ` ${data.jobId}`}, ${new Date(data.takenAt).toISOString().slice(0, 19)}Z`;
  const escaped = title.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return template.replace('<!--title-->', () => escaped).replace('<!--data-->', () => json);
}

/** The same words as on the terminal. */
function verdictsOf({ failures }: Replay): PageVerdict[] {
  return failures.slice(0, MAX_VERDICTS).map((failure) => {
    const { sentence, details, remedy } = failureText(failure);
    return { sentence, details: details.slice(0, MAX_DETAILS), remedy };
  });
}

/** Those called last, where there are too many. */
function newest(communicators: readonly ReplayedCommunicator[]): { kept: ReplayedCommunicator[]; omitted: number } {
  const all = communicators
    .flatMap(({ operations }) => operations)
    .toSorted((one, other) => beginOf(other) - beginOf(one));
  const keep = new Set<ReplayedOperation>();
  let parts = 0;
  for (const operation of all) {
    parts += operation.parts.length;
    if (parts > MAX_PARTS) break;
    keep.add(operation);
  }
  return {
    kept: communicators.map((one) => ({ ...one, operations: one.operations.filter((each) => keep.has(each)) })),
    omitted: all.length - keep.size,
  };
}

/**
 * Of each communicator the number of operations; of each: flags, number, place, call, bytes, begin after that of the one before, of a message its
 * two ranks in the job plus 1, the ranks that are missing, the rank that was last plus 1, and the ranks that came, with times after the begin.
 */
function seriesOf(
  communicators: readonly ReplayedCommunicator[],
  zero: number,
  calls: Map<string, number>,
): { operations: string; last: number } {
  const writer = new NumberWriter();
  let last = 0;
  const indexOf = (text: string): number => {
    const known = calls.get(text) ?? calls.size;
    calls.set(text, known);
    return known;
  };
  for (const { operations, rankOf } of communicators) {
    writer.put(operations.length);
    let before = 0;
    let numberBefore = 0;
    for (const operation of operations) {
      const [first] = operation.parts;
      const begin = units(beginOf(operation) - zero);
      const { isReplay, from, to, differs } = operation;
      const texts = [...new Set(operation.parts.map(({ entry }) => callText(entry)))];
      const text =
        from === null
          ? texts.join(' / ')
          : `message${first === undefined ? '' : ` ${callText(first.entry).split(' ')[1] ?? ''}`}`;
      writer.put(
        (isReplay ? OperationFlag.replay : 0) +
          (from === null ? 0 : OperationFlag.message) +
          (differs ? OperationFlag.differs : 0),
      );
      writer.putSigned(operation.number - numberBefore);
      numberBefore = operation.number;
      writer.put(operation.place);
      writer.put(indexOf(text));
      writer.put(first === undefined ? 0 : bytesOf(first.entry));
      writer.putSigned(begin - before);
      before = begin;
      if (from !== null && to !== null) for (const end of [from, to]) writer.put((rankOf.get(end) ?? -1) + 1);
      putRanks(writer, operation.missing);
      writer.put((operation.last ?? -1) + 1);
      putRanks(
        writer,
        operation.parts.map(({ rank }) => rank),
      );
      for (const part of operation.parts) {
        putPart(writer, part, (ns) => units(ns - zero) - begin, rankOf);
        last = Math.max(last, units((part.endedNs ?? part.startedNs ?? part.enqueuedNs) - zero));
      }
    }
  }
  return { operations: deflateSync(Uint8Array.from(writer.bytes), { level: 9 }).toString('base64'), last };
}

function units(ns: number): number {
  return Math.round(ns / UNIT_NS);
}

function putRanks(writer: NumberWriter, ranks: readonly number[]): void {
  writer.put(ranks.length);
  let before = -1;
  for (const rank of ranks) {
    writer.putSigned(rank - before - 1);
    before = rank;
  }
}

/** State, call, beginning and end after that (0: none), and for whom it waits plus 1. */
function putPart(
  writer: NumberWriter,
  { entry, enqueuedNs, startedNs, endedNs }: Part,
  after: (ns: number) => number,
  rankOf: ReadonlyMap<number, number>,
): void {
  writer.put(PAGE_STATES.indexOf(stateOf(entry)));
  writer.putSigned(after(startedNs ?? enqueuedNs));
  writer.put(startedNs === null || endedNs === null ? 0 : 1 + Math.max(0, after(endedNs) - after(startedNs)));
  writer.put(stateOf(entry) === 'ended' ? 0 : (rankOf.get(entry.lastPeer) ?? -1) + 1);
}

function escaped(text: string): string {
  return text.replaceAll(/[^\w]/g, String.raw`\$&`);
}

/** `host 1`, `host 2` … instead of the names, wherever they stand as words. */
function redacted(data: PageData, names: readonly string[]): PageData {
  const byLength = names
    .map((name, index) => ({ name, as: `host ${index + 1}` }))
    .toSorted((one, other) => other.name.length - one.name.length);
  const clean = (text: string): string =>
    byLength.reduce(
      (rest, { name, as }) => rest.replaceAll(new RegExp(`(?<![\\w.-])${escaped(name)}(?![\\w-]|\\.\\w)`, 'g'), as),
      text,
    );
  return {
    ...data,
    hosts: data.hosts.map((host, index) => ({ ...host, host: `host ${index + 1}` })),
    verdicts: data.verdicts.map(({ sentence, details, remedy }) => ({
      sentence: clean(sentence),
      details: details.map(clean),
      remedy: remedy === null ? null : clean(remedy),
    })),
  };
}
