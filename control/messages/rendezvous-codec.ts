/** Payloads of rendezvous.ts, written and read (bounds-checked; a malformed one throws ProtocolError). */
import { ByteReader, ByteWriter } from './bytes.ts';
import { KEY_BYTES, readKey, writeKey } from './key.ts';
import type { Key } from './key.ts';
import { LeftHow } from './rendezvous.ts';
import type { NcclResult } from './bootstrap.ts';
import { readResult } from './result.ts';

/** A sentence; launchers and agents remember some of them. */
const MAX_REASON = 4096;

/** One rank's contribution under a key. */
export interface Entry {
  readonly rank: number;
  /** Rank in the job, -1 if unknown. */
  readonly jobRank: number;
  /** As the rank's host sees it. */
  readonly pid: number;
  readonly bytes: Uint8Array;
}

export interface Merged {
  readonly key: Key;
  readonly size: number;
  readonly entries: readonly Entry[];
}

export function encodeMerged(merged: Merged): Uint8Array {
  const volume = merged.entries.reduce((sum, entry) => sum + 16 + entry.bytes.length, 0);
  const writer = writeKey(new ByteWriter(KEY_BYTES + 8 + volume), merged.key);
  writer.u32(merged.size).u32(merged.entries.length);
  for (const { rank, jobRank, pid, bytes } of merged.entries) writer.u32(rank).i32(jobRank).u32(pid).block(bytes);
  return writer.finish();
}

export function decodeMerged(payload: Uint8Array): Merged {
  const reader = new ByteReader(payload, 'merged contributions');
  const key = readKey(reader);
  const size = reader.u32('size');
  const count = reader.u32('entries');
  const entries: Entry[] = [];
  for (let index = 0; index < count; index++) {
    entries.push({
      rank: reader.u32('rank'),
      jobRank: reader.i32('rank in the job'),
      pid: reader.u32('pid'),
      bytes: reader.block('contribution'),
    });
  }
  reader.end();
  return { key, size, entries };
}

/** `table`: what every rank contributed, in rank order. */
export function encodeCompleted(key: Key, table: readonly Uint8Array[]): Uint8Array {
  const volume = table.reduce((sum, bytes) => sum + 4 + bytes.length, 0);
  const writer = writeKey(new ByteWriter(KEY_BYTES + 4 + volume), key).u32(table.length);
  for (const bytes of table) writer.block(bytes);
  return writer.finish();
}

/** `table` is the payload of FrameKind.table as it goes to an engine, checked. */
export function decodeCompleted(payload: Uint8Array): { readonly key: Key; readonly table: Uint8Array } {
  const reader = new ByteReader(payload, 'completed table');
  const key = readKey(reader);
  const table = payload.subarray(payload.length - reader.left);
  const size = reader.u32('size');
  for (let rank = 0; rank < size; rank++) reader.block('contribution');
  reader.end();
  return { key, table };
}

/** The rows of a table as decodeCompleted returns it. */
export function tableRows(table: Uint8Array): Uint8Array[] {
  const reader = new ByteReader(table, 'table');
  return Array.from({ length: reader.u32('size') }, () => reader.block('contribution'));
}

export function encodePlanBody(key: Key, body: Uint8Array): Uint8Array {
  return writeKey(new ByteWriter(KEY_BYTES + body.length), key)
    .bytes(body)
    .finish();
}

export function decodePlanBody(payload: Uint8Array): { readonly key: Key; readonly body: Uint8Array } {
  const reader = new ByteReader(payload, 'shared part of a plan');
  const key = readKey(reader);
  return { key, body: reader.bytes(reader.left, 'plan') };
}

/** `part`: the HostPlan's header followed by what comes after the shared part. */
export interface HostPlanPart {
  readonly key: Key;
  readonly segmentBytes: number;
  readonly part: Uint8Array;
}

export function encodeHostPlanPart({ key, segmentBytes, part }: HostPlanPart): Uint8Array {
  return writeKey(new ByteWriter(KEY_BYTES + 12 + part.length), key)
    .u64(segmentBytes)
    .block(part)
    .finish();
}

export function decodeHostPlanPart(payload: Uint8Array): HostPlanPart {
  const reader = new ByteReader(payload, "host's part of a plan");
  const decoded = { key: readKey(reader), segmentBytes: reader.size('segment bytes'), part: reader.block('plan') };
  reader.end();
  return decoded;
}

export interface KeyFailed {
  readonly key: Key;
  readonly result: NcclResult;
  readonly sentence: string;
}

export function encodeKeyFailed({ key, result, sentence }: KeyFailed): Uint8Array {
  return writeKey(new ByteWriter(), key).u32(result).string(sentence).finish();
}

export function decodeKeyFailed(payload: Uint8Array): KeyFailed {
  const reader = new ByteReader(payload, 'failure of a key');
  const decoded = { key: readKey(reader), result: readResult(reader), sentence: reader.string('sentence') };
  reader.end();
  return decoded;
}

/** A message from rank `from` to rank `to` of the communicator to be. */
export interface Routed {
  readonly key: Key;
  readonly from: number;
  readonly to: number;
  readonly tag: number;
  readonly bytes: Uint8Array;
}

export function encodeRouted({ key, from, to, tag, bytes }: Routed): Uint8Array {
  const writer = writeKey(new ByteWriter(KEY_BYTES + 16 + bytes.length), key);
  return writer.u32(from).u32(to).u32(tag).block(bytes).finish();
}

export function decodeRouted(payload: Uint8Array): Routed {
  const reader = new ByteReader(payload, 'routed message');
  const decoded = {
    key: readKey(reader),
    from: reader.u32('from'),
    to: reader.u32('to'),
    tag: reader.u32('tag'),
    bytes: reader.block('message'),
  };
  reader.end();
  return decoded;
}

export interface Left {
  readonly key: Key;
  /** ALL_RANKS: every rank of the host. */
  readonly rank: number;
  readonly how: LeftHow;
  readonly reason: string;
}

export function encodeLeft({ key, rank, how, reason }: Left): Uint8Array {
  return writeKey(new ByteWriter(), key).u32(rank).u32(how).string(reason.slice(0, MAX_REASON)).finish();
}

export function decodeLeft(payload: Uint8Array): Left {
  const reader = new ByteReader(payload, 'leave of a rank');
  const key = readKey(reader);
  const rank = reader.u32('rank');
  const number = reader.u32('how');
  const how = Object.values(LeftHow).find((value) => value === number);
  if (how === undefined) throw reader.malformed(`${number} is no kind of departure`);
  const reason = reader.string('reason');
  if (reason.length > MAX_REASON) throw reader.malformed(`a reason of ${reason.length} characters`);
  reader.end();
  return { key, rank, how, reason };
}

export interface Broken extends KeyFailed {
  /** Who broke the communicator; NO_RANK if nobody in particular. */
  readonly rank: number;
}

export function encodeBroken({ key, rank, result, sentence }: Broken): Uint8Array {
  return writeKey(new ByteWriter(), key).u32(rank).u32(result).string(sentence).finish();
}

export function decodeBroken(payload: Uint8Array): Broken {
  const reader = new ByteReader(payload, 'end of a communicator');
  const decoded = {
    key: readKey(reader),
    rank: reader.u32('rank'),
    result: readResult(reader),
    sentence: reader.string('sentence'),
  };
  reader.end();
  return decoded;
}
