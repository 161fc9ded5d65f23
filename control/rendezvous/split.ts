/** Splits a communicator (ncclCommSplit, ncclCommShrink): computes the new communicators from the colours that its ranks contribute. */
import { NO_COLOUR } from '../messages/bootstrap.ts';
import type { Key } from '../messages/key.ts';
import { JOIN_ROUND } from '../messages/rendezvous.ts';
import { readSplit } from '../messages/split.ts';
import type { PendingGather } from './collector.ts';

/** A new communicator. */
export interface SplitPart {
  readonly key: Key;
  /** Ranks in the parent communicator, in the order of the new ranks. */
  readonly ranks: readonly number[];
}

/** `contributions` by rank of the parent communicator, empty for ranks left out. A pure function, so agents and launcher compute the same result. */
export function splitParts(key: Key, contributions: readonly Uint8Array[]): SplitPart[] {
  const colours = new Map<number, { readonly rank: number; readonly order: number }[]>();
  contributions.forEach((bytes, rank) => {
    if (bytes.length === 0) return;
    const { colour, order } = readSplit(bytes, contributions.length, rank);
    if (colour === NO_COLOUR) return;
    const members = colours.get(colour);
    if (members === undefined) colours.set(colour, [{ rank, order }]);
    else members.push({ rank, order });
  });
  return Array.from(colours, ([colour, members]) => ({
    key: partKey(key, colour),
    ranks: members.toSorted((one, other) => one.order - other.order || one.rank - other.rank).map(({ rank }) => rank),
  }));
}

/** Contributions of the ranks of `part` as if they had joined by its own id. */
export function joinOf({ key, ranks }: SplitPart, split: PendingGather): PendingGather {
  const entries: PendingGather['entries'] = new Map();
  const hosts = new Set<number>();
  ranks.forEach((old, rank) => {
    const entry = split.entries.get(old);
    if (entry === undefined) return;
    entries.set(rank, { ...entry, rank, bytes: readSplit(entry.bytes, split.size, old).peerInfo });
    hosts.add(entry.host);
  });
  return { key, size: ranks.length, entries, leftOut: [], withoutGone: false, hosts, since: split.since };
}

/** Key with the parent id's magic and job; id, epoch, number of the split and colour determine its random part. */
function partKey({ id, epoch, round }: Key, colour: number): Key {
  const seed = Buffer.alloc(12);
  seed.writeUInt32LE(epoch, 0);
  seed.writeUInt32LE(round, 4);
  seed.writeInt32LE(colour, 8);
  const bytes = Buffer.from(id, 'latin1');
  const hash = process.getBuiltinModule('node:crypto').createHash('sha256').update(bytes).update(seed).digest();
  hash.copy(bytes, 16, 0, 16);
  return { id: bytes.toString('latin1'), epoch, round: JOIN_ROUND };
}
