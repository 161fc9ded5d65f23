/** The tables of a HostPlan that speak of one host's ranks: who they are, their ring edges, and the cards that reach their GPUs. */
import { cardNumber, GPU_DIRECT_VERDICTS } from './gpu-nics.ts';
import type { GpuNic } from './gpu-nics.ts';
import { EDGE_KINDS, EDGE_RECORD, GPU_NIC_RECORD, LOCAL_RECORD, NO_NIC, STRIDE, TRANSPORTS } from './layout.ts';
import { isNetwork, nicNumber } from './network.ts';
import type { SegmentLayout } from './segment.ts';
import type { CommPlan } from './types.ts';
import { writeU64 } from './u64.ts';

/** Of one channel's ring, by rank. */
export interface RingNeighbourTables {
  readonly next: Uint32Array;
  readonly previous: Uint32Array;
}

/** `bytes`: LocalRecord × ranks, then EdgeRecord × edges. */
interface LocalTables {
  readonly bytes: Uint8Array;
  readonly edges: number;
}

/** Each rank's edges lie together: for every channel the one it sends on, then the one it receives on. `ranks`: of this host, ascending. */
export function encodeLocalTables(
  plan: CommPlan,
  ranks: Uint32Array,
  neighbours: readonly RingNeighbourTables[],
  localIndex: Uint32Array,
  segment: SegmentLayout,
): LocalTables {
  // Connections of GPUs follow a rule, as those of pairs.
  const perRank = plan.device === 'host' && plan.peers.length > 1 ? 2 * plan.channels.length : 0;
  const edges = ranks.length * perRank;
  const edgesAt = ranks.length * STRIDE.local;
  const view = new DataView(new ArrayBuffer(edgesAt + edges * STRIDE.edge));
  const hostOf = (rank: number): number => plan.peers[rank]?.host ?? -1;

  const writeEdge = (edge: number, channel: number, rank: number, peer: number, sends: boolean): void => {
    const sameHost = hostOf(rank) === hostOf(peer);
    const transport = sameHost ? plan.transports.sameHost : plan.transports.otherHost;
    const at = edgesAt + edge * STRIDE.edge;
    view.setUint32(at + EDGE_RECORD.channel, channel, true);
    view.setUint32(at + EDGE_RECORD.peer, peer, true);
    view.setUint8(at + EDGE_RECORD.transport, TRANSPORTS.indexOf(transport));
    view.setUint8(at + EDGE_RECORD.sends, sends ? 1 : 0);
    view.setUint8(at + EDGE_RECORD.kind, EDGE_KINDS.indexOf('ring'));
    const nic = isNetwork(transport) ? (plan.channels[channel]?.rail ?? 0) : NO_NIC;
    view.setUint16(at + EDGE_RECORD.nic, nic, true);
    view.setUint16(at + EDGE_RECORD.peerNic, nic, true);
    view.setUint32(at + EDGE_RECORD.steps, plan.ringBuffer.steps, true);
    view.setUint32(at + EDGE_RECORD.stepBytes, plan.ringBuffer.stepBytes, true);
    if (transport !== 'shm') return;
    // A connection belongs to its sender, so both ends compute the same offset.
    const sender = localIndex[sends ? rank : peer] ?? 0;
    const connection = channel * ranks.length + sender;
    writeU64(view, at + EDGE_RECORD.segmentOffset, segment.ringOffset + connection * segment.ringStride);
  };

  ranks.forEach((rank, index) => {
    const at = index * STRIDE.local;
    view.setUint32(at + LOCAL_RECORD.rank, rank, true);
    view.setUint32(at + LOCAL_RECORD.firstEdge, index * perRank, true);
    view.setUint32(at + LOCAL_RECORD.edgeCount, perRank, true);
    view.setUint32(at + LOCAL_RECORD.pairNic, nicNumber(plan.peers[rank]?.pairNic ?? null), true);
    if (perRank === 0) return;
    neighbours.forEach(({ next, previous }, channel) => {
      const edge = index * perRank + 2 * channel;
      writeEdge(edge, channel, rank, next[rank] ?? 0, true);
      writeEdge(edge + 1, channel, rank, previous[rank] ?? 0, false);
    });
  });
  return { bytes: new Uint8Array(view.buffer), edges };
}

export function encodeGpuNics(gpuNics: readonly GpuNic[]): Uint8Array {
  const view = new DataView(new ArrayBuffer(gpuNics.length * STRIDE.gpuNic));
  gpuNics.forEach(({ local, card, path, receives, sends }, index) => {
    const at = index * STRIDE.gpuNic;
    if (card === null) view.setBigUint64(at + GPU_NIC_RECORD.card, ANY_CARD, true);
    else writeU64(view, at + GPU_NIC_RECORD.card, cardNumber(card));
    view.setUint32(at + GPU_NIC_RECORD.local, local, true);
    view.setUint8(at + GPU_NIC_RECORD.receives, GPU_DIRECT_VERDICTS.indexOf(receives));
    view.setUint8(at + GPU_NIC_RECORD.sends, GPU_DIRECT_VERDICTS.indexOf(sends));
    for (let i = 0; i < PATH_BYTES; i++) view.setUint8(at + GPU_NIC_RECORD.path + i, path.charCodeAt(i) || 0);
  });
  return new Uint8Array(view.buffer);
}

const ANY_CARD = 0xffff_ffff_ffff_ffffn;
const PATH_BYTES = 4;
