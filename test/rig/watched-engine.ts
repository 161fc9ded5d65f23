/** Engines as their agent knows them, with the telemetry page that a process would have written. */
import type { Key } from '../../control/messages/key.ts';
import type { Engine } from '../../worker/agent/engine.ts';
import { SLOT } from '../../worker/agent/slot-layout.ts';
import { TELEMETRY_BYTES, WAITS_FOR_NOBODY } from '../../worker/agent/telemetry.ts';

const FIRST_SLOT = 512;
const [IDLE, WAITING] = [1, 4];
/** Of the collective that the rank has called last. */
const BARRIER = 9;

/** The engine of one rank of a communicator, which has called `count` collectives, the last with this hash. */
export function watchedEngine(
  key: Key,
  rank: number,
  { count = 1, hash = 7, waiting = false, waitingFor = WAITS_FOR_NOBODY } = {},
): Engine {
  const page = Buffer.alloc(TELEMETRY_BYTES);
  page.writeUInt32LE(0x5054_434e, 0);
  page.writeUInt32LE(3, 4);
  const slot = page.subarray(FIRST_SLOT);
  Buffer.from(key.id, 'latin1').copy(slot, 0, 16, 24);
  slot.writeUInt32LE(rank, SLOT.rank);
  slot.writeUInt32LE(waiting ? WAITING : IDLE, SLOT.state);
  slot.writeUInt32LE(waitingFor, 72);
  slot.writeUInt32LE(key.epoch, SLOT.epoch);
  slot.writeBigUInt64LE(BigInt(count), SLOT.hashed);
  slot.writeUInt16LE(hash, SLOT.recentHashes + 2 * (count % 36));
  slot.writeUInt32LE(BARRIER, SLOT.hashedCollective);
  const hello = { protocol: 1, pid: 10 + rank, rank, jobId: 'j', engineVersion: '1' };
  return {
    connection: rank,
    pid: 10 + rank,
    hello,
    jobRank: rank,
    telemetry: [page],
    recorder: new Uint8Array(0),
    gone: false,
    goodbye: null,
  };
}

/** The engine writes that it has lost the connection to this rank of the communicator. */
export function losesPeer({ telemetry: [page] }: Engine, peer: number): void {
  if (page !== undefined) Buffer.from(page.buffer, page.byteOffset).writeUInt32LE(peer + 1, FIRST_SLOT + SLOT.lostPeer);
}

/** The engine writes that it waits in an operation, in vain. */
export function waits({ telemetry: [page] }: Engine): void {
  if (page !== undefined) Buffer.from(page.buffer, page.byteOffset).writeUInt32LE(WAITING, FIRST_SLOT + SLOT.state);
}
