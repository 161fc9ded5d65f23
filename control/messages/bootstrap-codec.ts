/** Payloads of bootstrap.ts: the agent decodes engines' requests (bounds-checked) and encodes answers; tests do the reverse. */
import { PEER_INFO_BYTES } from './bootstrap.ts';
import { readSplit } from './split.ts';
import type { NcclResult } from './bootstrap.ts';
import { ByteReader, ByteWriter } from './bytes.ts';
import { idBytes, readId } from './key.ts';
import { isShrinkRound, isSplitRound, JOIN_ROUND, LeftHow, POST_ROUND, SPLIT_ROUND } from './rendezvous.ts';
import type { Key } from './key.ts';

export interface EngineHello {
  readonly protocol: number;
  /** PID in the engine's own PID namespace; the host may see another (containers). */
  readonly pid: number;
  /** Rank in the job, -1 if unknown. */
  readonly rank: number;
  readonly jobId: string;
  readonly engineVersion: string;
}

export function decodeEngineHello(payload: Uint8Array): EngineHello {
  const reader = new ByteReader(payload, 'hello of an engine');
  const hello = {
    protocol: reader.u32('protocol'),
    pid: reader.u32('pid'),
    rank: reader.i32('rank'),
    jobId: reader.string('job id'),
    engineVersion: reader.string('engine version'),
  };
  reader.end();
  return hello;
}

/** A contribution to a key: a join (bytes: PeerInfo) or a gather. */
export interface Contribution {
  readonly key: Key;
  readonly size: number;
  readonly rank: number;
  readonly bytes: Uint8Array;
}

export function decodeJoin(payload: Uint8Array): Contribution {
  const reader = new ByteReader(payload, 'join of a communicator');
  const key = { id: readId(reader), epoch: reader.u32('epoch'), round: JOIN_ROUND };
  const join = {
    key,
    size: reader.u32('size'),
    rank: reader.u32('rank'),
    bytes: reader.bytes(PEER_INFO_BYTES, 'peer info'),
  };
  reader.end();
  return join;
}

export function decodeGather(payload: Uint8Array): Contribution {
  const reader = new ByteReader(payload, 'contribution to a gather');
  const key = { id: readId(reader), epoch: reader.u32('epoch'), round: reader.u32('round') };
  if (key.round >= SPLIT_ROUND) throw reader.malformed(`round ${key.round} is reserved`);
  const gather = { key, size: reader.u32('size'), rank: reader.u32('rank'), bytes: reader.block('bytes') };
  reader.end();
  return gather;
}

/** A contribution whose bytes readSplit has checked. */
export function decodeSplit(payload: Uint8Array): Contribution {
  const reader = new ByteReader(payload, 'split of a communicator');
  const key = { id: readId(reader), epoch: reader.u32('epoch'), round: reader.u32('round') };
  if (!isSplitRound(key.round)) throw reader.malformed(`round ${key.round} splits nothing`);
  const [size, rank] = [reader.u32('size'), reader.u32('rank')];
  const bytes = reader.bytes(reader.left, 'contribution');
  const { leftOut } = readSplit(bytes, size, rank);
  if (leftOut.length > 0 && !isShrinkRound(key.round)) throw reader.malformed('a split leaves out no rank');
  return { key, size, rank, bytes };
}

/** A post, or a fetch without `bytes`. */
export interface MailboxMessage {
  readonly key: Key;
  readonly from: number;
  readonly to: number;
  readonly tag: number;
}

export function decodePost(payload: Uint8Array): MailboxMessage & { readonly bytes: Uint8Array } {
  const reader = new ByteReader(payload, 'post');
  const post = { ...readMailboxMessage(reader), bytes: reader.block('bytes') };
  reader.end();
  return post;
}

export function decodeFetch(payload: Uint8Array): MailboxMessage {
  const reader = new ByteReader(payload, 'fetch');
  const fetch = readMailboxMessage(reader);
  reader.end();
  return fetch;
}

function readMailboxMessage(reader: ByteReader): MailboxMessage {
  const key = { id: readId(reader), epoch: reader.u32('epoch'), round: POST_ROUND };
  return { key, from: reader.u32('from'), to: reader.u32('to'), tag: reader.u32('tag') };
}

const LEAVES = Object.values(LeftHow).filter((how) => how !== LeftHow.missed && how !== LeftHow.suspected);

export interface Leave {
  readonly key: Key;
  readonly rank: number;
  readonly how: LeftHow;
  readonly reason: string;
}

export function decodeLeave(payload: Uint8Array): Leave {
  const reader = new ByteReader(payload, 'leave');
  const [id, epoch] = [readId(reader), reader.u32('epoch')];
  const rank = reader.u32('rank');
  const number = reader.u32('how');
  const how = LEAVES.find((value) => value === number);
  if (how === undefined) {
    throw reader.malformed(`${number} is no kind of departure`);
  }
  const reason = reader.string('reason');
  const round = reader.u32('round');
  if (round !== JOIN_ROUND && !isSplitRound(round)) throw reader.malformed(`nobody leaves round ${round}`);
  reader.end();
  return { key: { id, epoch, round }, rank, how, reason };
}

export interface Welcome {
  readonly hostIndex: number;
  readonly hostCount: number;
  readonly rankCount: number;
  readonly epoch: number;
  readonly jobId: string;
  readonly hostName: string;
}

export function encodeWelcome(welcome: Welcome): Uint8Array {
  return new ByteWriter()
    .u32(welcome.hostIndex)
    .u32(welcome.hostCount)
    .u32(welcome.rankCount)
    .u32(welcome.epoch)
    .string(welcome.jobId)
    .string(welcome.hostName)
    .finish();
}

/** `rank` and `size` belong to the communicator of `key`. */
export function encodePlanAnswer(localIndex: number, key: Key, size: number, rank: number): Uint8Array {
  return new ByteWriter().u32(localIndex).bytes(idBytes(key.id)).u32(key.epoch).u32(size).u32(rank).finish();
}

export function encodeDelivery(bytes: Uint8Array): Uint8Array {
  return new ByteWriter(bytes.length + 4).block(bytes).finish();
}

export function encodeRefused(result: NcclResult, sentence: string): Uint8Array {
  return new ByteWriter().u32(result).string(sentence).finish();
}

export interface PeerGone {
  /** The rank that receives the notice; `rank` is the one that is gone. */
  readonly to: number;
  readonly rank: number;
  readonly result: NcclResult;
  readonly sentence: string;
  /** True if the receiving rank has been waiting for a peer for long. */
  readonly waited: boolean;
}

export function encodePeerGone(key: Key, { to, rank, result, sentence, waited }: PeerGone): Uint8Array {
  const writer = new ByteWriter().bytes(Buffer.from(key.id, 'latin1')).u32(key.epoch);
  return writer.u32(to).u32(rank).u32(result).string(sentence).u32(Number(waited)).finish();
}

export function encodeAborted(key: Key, rank: number, result: NcclResult, sentence: string): Uint8Array {
  const writer = new ByteWriter().bytes(Buffer.from(key.id, 'latin1')).u32(key.epoch);
  return writer.u32(rank).u32(result).string(sentence).finish();
}
