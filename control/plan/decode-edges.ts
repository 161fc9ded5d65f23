/** The edges of a host's ranks, read back. */
import { EDGE_KINDS, EDGE_RECORD, HEADER, STRIDE, TRANSPORTS } from './layout.ts';
import { nicFromNumber } from './network.ts';
import { named } from './plan-reader.ts';
import type { PlanReader } from './plan-reader.ts';
import { connectionBytes } from './segment.ts';
import type { CommPlan, ConnectionBuffer, EdgeKind, TransportName } from './types.ts';
import { PlanError } from './validate.ts';

export interface DecodedEdge {
  readonly kind: EdgeKind;
  readonly channel: number;
  readonly peer: number;
  readonly transport: TransportName;
  readonly sends: boolean;
  /** Indices among the NICs of this host and of the peer's; null where no network is used. */
  readonly nic: number | null;
  readonly peerNic: number | null;
  readonly gpuDirect: boolean;
  readonly slots: ConnectionBuffer;
  /** Of the Connection in the host segment; 0 without one. */
  readonly segmentOffset: number;
}

export function decodeEdges(reader: PlanReader, plan: CommPlan, segmentBytes: number): DecodedEdge[] {
  const table = reader.section(HEADER.edgeTable, STRIDE.edge, 'edgeTable');
  return Array.from({ length: table.count }, (_, index) => {
    const at = table.at(index);
    const what = `edgeTable[${index}]`;
    const edge = {
      kind: named(EDGE_KINDS, reader.u8(at + EDGE_RECORD.kind), `${what}.kind`),
      channel: reader.u32(at + EDGE_RECORD.channel),
      peer: reader.u32(at + EDGE_RECORD.peer),
      transport: named(TRANSPORTS, reader.u8(at + EDGE_RECORD.transport), `${what}.transport`),
      sends: reader.u8(at + EDGE_RECORD.sends) !== 0,
      nic: nicFromNumber(reader.u16(at + EDGE_RECORD.nic)),
      peerNic: nicFromNumber(reader.u16(at + EDGE_RECORD.peerNic)),
      gpuDirect: reader.u8(at + EDGE_RECORD.gpuDirect) !== 0,
      slots: { steps: reader.u32(at + EDGE_RECORD.steps), stepBytes: reader.u32(at + EDGE_RECORD.stepBytes) },
      segmentOffset: reader.u64(at + EDGE_RECORD.segmentOffset, `${what}.segmentOffset`),
    };
    if (edge.channel >= plan.channels.length || edge.peer >= plan.peers.length) {
      throw new PlanError(`${what}: channel ${edge.channel}, peer ${edge.peer} do not exist`);
    }
    if (edge.transport === 'shm' && edge.segmentOffset + connectionBytes(edge.slots) > segmentBytes) {
      throw new PlanError(`${what}: lies beyond the segment's ${segmentBytes} bytes`);
    }
    return edge;
  });
}
