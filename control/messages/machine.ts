/** A host's topology in NCCL's XML, which its agent sends to the launcher. */
import { ByteReader, ByteWriter } from './bytes.ts';

export interface MachineXml {
  readonly topology: string;
  /** Content of NCCL_GRAPH_FILE; null if the variable is unset. */
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
