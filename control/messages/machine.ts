/** What a host is, as its agent tells the launcher: NCCL's XML. */
import { ByteReader, ByteWriter } from './bytes.ts';

export interface MachineXml {
  readonly topology: string;
  /** Of NCCL_GRAPH_FILE; null: there is none. */
  readonly graphs: string | null;
}

export function encodeMachineXml({ topology, graphs }: MachineXml): Uint8Array {
  return new ByteWriter(topology.length + (graphs?.length ?? 0) + 8)
    .string(topology)
    .string(graphs ?? '')
    .finish();
}

export function decodeMachineXml(payload: Uint8Array): MachineXml {
  const reader = new ByteReader(payload, 'machine');
  const topology = reader.string('topology');
  const graphs = reader.string('graphs');
  reader.end();
  return { topology, graphs: graphs === '' ? null : graphs };
}
