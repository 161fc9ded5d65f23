/** The memory of a flight recorder as an engine writes it (native/include/ncclrun.h, ncclrunRecorder). */
import { NO_PEER, RECORDER_ENTRIES, type RecorderEntry } from '../../control/messages/recorder.ts';
import { EDGE } from '../../worker/agent/edges.ts';
import { CLOCK, CLOCK_BYTES } from '../../worker/agent/gpu-clock.ts';
import {
  COMMUNICATOR,
  COMMUNICATOR_BYTES,
  EDGE_BYTES,
  ENTRY,
  ENTRY_BYTES,
  FIRST_COMMUNICATOR,
  FIRST_EDGE,
  FIRST_ENTRY,
  FIRST_REPLAY,
  HEADER,
  RECORDER_BYTES,
} from '../../worker/agent/recorder.ts';

/** An all-reduce of 4 floats that has ended. */
export function entryOf(sequence: number, changes: Partial<RecorderEntry> = {}): RecorderEntry {
  const enqueuedNs = 1_000_000_000 + sequence * 1000;
  return {
    sequence,
    enqueuedNs,
    startedNs: enqueuedNs + 100,
    endedNs: enqueuedNs + 900,
    count: 4,
    operation: sequence,
    communicator: 0,
    peer: NO_PEER,
    lastPeer: NO_PEER,
    hash: sequence % 65_536,
    flags: 0,
    collective: 0,
    call: 7,
    algorithm: 2,
    protocol: 0,
    channels: 2,
    stream: 255,
    ...changes,
  };
}

interface EdgeCounters {
  readonly peer: number;
  readonly sends: boolean;
  readonly handed: number;
  readonly carried: number;
  readonly bytes?: number;
  readonly lastNs?: number;
  readonly channel?: number;
  readonly nic?: string;
  /** Bytes and nanoseconds. */
  readonly wire?: readonly [bytes: number, busyNs: number];
}

export class RecorderMemory {
  readonly bytes = Buffer.alloc(RECORDER_BYTES);

  constructor(jobRank: number, size = 4) {
    this.bytes.writeUInt32LE(0x5246_434e, HEADER.magic);
    this.bytes.writeUInt32LE(3, HEADER.version);
    this.bytes.writeUInt32LE(4711, HEADER.pid);
    this.bytes.writeInt32LE(jobRank, HEADER.jobRank);
    this.communicator(0, { rank: jobRank, size });
  }

  communicator(index: number, { rank, size, first = 1 }: { rank: number; size: number; first?: number }): this {
    const at = FIRST_COMMUNICATOR + index * COMMUNICATOR_BYTES;
    this.bytes.writeBigUInt64LE(0xab_cdefn + BigInt(index), at + COMMUNICATOR.communicator);
    this.bytes.writeBigUInt64LE(BigInt(first), at + COMMUNICATOR.firstSequence);
    this.bytes.writeUInt32LE(size, at + COMMUNICATOR.size);
    this.bytes.writeUInt32LE(rank, at + COMMUNICATOR.rank);
    this.bytes.write(`group${index}`, at + COMMUNICATOR.name, 'latin1');
    return this;
  }

  /** One end of a connection of communicator 0. */
  edge(index: number, sequence: bigint, edge: EdgeCounters): this {
    const at = FIRST_EDGE + index * EDGE_BYTES;
    const { peer, sends, nic = 'eth0', channel = 0, wire } = edge;
    const counters = [
      [EDGE.sequence, sequence],
      [EDGE.handed, edge.handed],
      [EDGE.carried, edge.carried],
      [EDGE.bytes, edge.bytes ?? 0],
      [EDGE.lastNs, edge.lastNs ?? 0],
      [EDGE.wireBytes, wire?.[0] ?? 0],
      [EDGE.wireBusyNs, wire?.[1] ?? 0],
    ] as const;
    for (const [offset, value] of counters) this.bytes.writeBigUInt64LE(BigInt(value), at + offset);
    this.bytes.writeUInt32LE(peer, at + EDGE.peer);
    this.bytes.writeUInt16LE(channel, at + EDGE.channel);
    this.bytes.writeUInt8(sends ? 1 : 0, at + EDGE.sends);
    this.bytes.write(nic, at + EDGE.nic, 'latin1');
    return this;
  }

  /** A GPU's clock, and that communicator 0 uses it: CLOCK_MONOTONIC is ahead by `offset`. */
  clock(gpu: number, offset: bigint, readings: readonly (readonly [number, bigint, number])[] = [[0, 0n, 500]]): this {
    const at = HEADER.clocks + gpu * CLOCK_BYTES;
    const [first = [0, 0n, 0] as const, last = first] = readings;
    this.bytes.writeBigUInt64LE(2n, at + CLOCK.sequence);
    this.bytes.writeBigUInt64LE(BigInt(first[0]), at + CLOCK.firstNs);
    this.bytes.writeBigUInt64LE(BigInt.asUintN(64, offset + first[1]), at + CLOCK.firstOffset);
    this.bytes.writeBigUInt64LE(BigInt(last[0]), at + CLOCK.lastNs);
    this.bytes.writeBigUInt64LE(BigInt.asUintN(64, offset + last[1]), at + CLOCK.lastOffset);
    this.bytes.writeUInt32LE(first[2], at + CLOCK.firstErrorNs);
    this.bytes.writeUInt32LE(last[2], at + CLOCK.lastErrorNs);
    this.bytes.writeUInt8(gpu + 1, HEADER.clockOf);
    return this;
  }

  /** What a kernel of a graph writes, with times of the GPU's clock. */
  replay(gpu: number, entry: RecorderEntry, started: bigint, ended: bigint): this {
    const at = FIRST_REPLAY + (gpu * RECORDER_ENTRIES + ((entry.sequence - 1) % RECORDER_ENTRIES)) * ENTRY_BYTES;
    this.#put(at, entry);
    return this.#stamp(at, entry.sequence, started, ended, started);
  }

  /** Stamps of a kernel for an entry that the host has written. */
  stamp(sequence: number, started: bigint, ended: bigint): this {
    return this.#stamp(FIRST_ENTRY + ((sequence - 1) % RECORDER_ENTRIES) * ENTRY_BYTES, sequence, started, ended);
  }

  #stamp(at: number, sequence: number, started: bigint, ended: bigint, enqueued?: bigint): this {
    const tag = BigInt(Math.floor((sequence - 1) / RECORDER_ENTRIES)) << 48n;
    const stampOf = (ns: bigint): bigint => BigInt.asUintN(48, ns) + tag;
    if (enqueued !== undefined) this.bytes.writeBigUInt64LE(stampOf(enqueued), at + ENTRY.enqueuedNs);
    this.bytes.writeBigUInt64LE(stampOf(started), at + ENTRY.startedNs);
    this.bytes.writeBigUInt64LE(stampOf(ended), at + ENTRY.endedNs);
    return this;
  }

  /** The entry that comes next. */
  write(entry: RecorderEntry): this {
    this.#put(FIRST_ENTRY + ((entry.sequence - 1) % RECORDER_ENTRIES) * ENTRY_BYTES, entry);
    this.bytes.writeBigUInt64LE(BigInt(entry.sequence), HEADER.lastSequence);
    return this;
  }

  #put(at: number, entry: RecorderEntry): void {
    this.bytes.writeBigUInt64LE(BigInt(entry.sequence), at + ENTRY.sequence);
    for (const [field, bytes] of [
      ['enqueuedNs', 8],
      ['startedNs', 8],
      ['endedNs', 8],
      ['count', 8],
      ['operation', 4],
      ['peer', 4],
      ['lastPeer', 4],
      ['communicator', 2],
      ['hash', 2],
      ['flags', 2],
      ['collective', 1],
      ['call', 1],
      ['algorithm', 1],
      ['protocol', 1],
      ['channels', 1],
      ['stream', 1],
    ] as const) {
      const [place, value] = [at + ENTRY[field], entry[field]];
      if (bytes === 8) this.bytes.writeBigUInt64LE(BigInt(value), place);
      else this.bytes.writeUIntLE(value, place, bytes);
    }
  }
}
