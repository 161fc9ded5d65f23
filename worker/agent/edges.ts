/** What the connections of ranks over the network have carried, from their flight recorders (native/include/ncclrun.h, ncclrunRecorderEdge). */
import { MAX_EDGES } from '../../control/messages/hang.ts';
import type { RankEdge } from '../../control/messages/hang.ts';
import type { RecordedCommunicator } from '../../control/messages/recorder.ts';
import { readU64 } from '../../control/plan/u64.ts';
import {
  EDGE_BYTES,
  FIRST_EDGE,
  HEADER,
  RECORDER_EDGES,
  readCommunicators,
  readName,
  recorderView,
} from './recorder.ts';

/** Of one edge. */
export const EDGE = {
  sequence: 0,
  handed: 8,
  carried: 16,
  bytes: 24,
  busyNs: 32,
  lastNs: 40,
  wireBytes: 48,
  wireBusyNs: 56,
  retransmits: 64,
  peer: 68,
  communicator: 72,
  channel: 74,
  sends: 76,
  reserved: 77,
  nic: 80,
} as const;
const NIC_BYTES = 48;

export function rankEdges(recorders: readonly Uint8Array[]): RankEdge[] {
  const nowNs = Number(process.hrtime.bigint());
  const all = recorders.flatMap((recorder) => {
    const view = recorderView(recorder);
    return view === null ? [] : edgesOf(view, nowNs);
  });
  return all.toSorted((one, other) => waiting(other) - waiting(one) || other.bytes - one.bytes).slice(0, MAX_EDGES);
}

/** 1: something is under way. */
function waiting({ sends, handed, carried }: RankEdge): number {
  return Number(sends && handed > carried);
}

function edgesOf(view: DataView, nowNs: number): RankEdge[] {
  const communicators = new Map(readCommunicators(view).map((one) => [one.index, one]));
  const jobRank = view.getInt32(HEADER.jobRank, true);
  const edges: RankEdge[] = [];
  for (let index = 0; index < RECORDER_EDGES; index++) {
    const at = FIRST_EDGE + index * EDGE_BYTES;
    const sequence = view.getBigUint64(at + EDGE.sequence, true);
    if (sequence === 0n || sequence % 2n === 1n) continue;
    const communicator = communicators.get(view.getUint16(at + EDGE.communicator, true));
    const edge = communicator === undefined ? null : edgeAt(view, at, { communicator, jobRank, nowNs });
    if (edge !== null && view.getBigUint64(at + EDGE.sequence, true) === sequence) edges.push(edge);
  }
  return edges;
}

interface EdgeOf {
  readonly communicator: RecordedCommunicator;
  readonly jobRank: number;
  readonly nowNs: number;
}

/** Null: what the process has written is none. */
function edgeAt(view: DataView, at: number, { communicator, jobRank, nowNs }: EdgeOf): RankEdge | null {
  const field = (offset: number): number => readU64(view, at + offset);
  const us = (offset: number): number => Math.round(field(offset) / 1000);
  const [handed, carried, bytes, lastNs] = [
    field(EDGE.handed),
    field(EDGE.carried),
    field(EDGE.bytes),
    field(EDGE.lastNs),
  ];
  const wire = {
    bytes: field(EDGE.wireBytes),
    busyUs: us(EDGE.wireBusyNs),
    retransmits: view.getUint32(at + EDGE.retransmits, true),
  };
  const peer = view.getUint32(at + EDGE.peer, true);
  const busyUs = us(EDGE.busyNs);
  const counters = [handed, carried, bytes, busyUs, lastNs, wire.bytes, wire.busyUs];
  if (!counters.every(Number.isSafeInteger) || peer >= communicator.size || jobRank < 0) return null;
  return {
    communicator: communicator.id,
    epoch: communicator.epoch,
    jobRank,
    rank: communicator.rank,
    peer,
    channel: view.getUint16(at + EDGE.channel, true),
    sends: view.getUint8(at + EDGE.sends) !== 0,
    nic: readName(view, at + EDGE.nic, NIC_BYTES),
    handed,
    carried,
    bytes,
    busyUs,
    idleUs: lastNs === 0 ? null : Math.max(0, Math.round((nowNs - lastNs) / 1000)),
    wire: wire.busyUs === 0 ? null : wire,
  };
}
