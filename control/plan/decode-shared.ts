/** The tables of a HostPlan that are the same on every host, read back. */
import { cardAddress, GPU_DIRECT_VERDICTS } from './gpu-nics.ts';
import type { GpuDirectVerdict, GpuNic } from './gpu-nics.ts';
import {
  AGGREGATOR_RECORD,
  GPU_NIC_RECORD,
  HEADER,
  HOST_RECORD,
  NIC_RECORD,
  PEER_RECORD,
  SEGMENT_TOKEN_BYTES,
  STRIDE,
} from './layout.ts';
import { nicFromNumber } from './network.ts';
import type { PlanNetwork, PlanNic } from './network.ts';
import { named } from './plan-reader.ts';
import type { PlanReader, SectionReader } from './plan-reader.ts';
import type { PlanAggregators, PlanHost, PlanPeer } from './types.ts';
import { PlanError } from './validate.ts';

export function decodePeers(reader: PlanReader, ranks: number): PlanPeer[] {
  const table = reader.section(HEADER.peerTable, STRIDE.peer, 'peerTable');
  if (ranks === 0) throw new PlanError('ranks: 0, a communicator has at least one');
  if (table.count !== ranks) throw new PlanError(`peerTable: ${table.count} records for ${ranks} ranks`);
  return Array.from({ length: ranks }, (_, rank) => {
    const at = table.at(rank);
    return {
      host: reader.u32(at + PEER_RECORD.host),
      listenPort: reader.u32(at + PEER_RECORD.listenPort),
      pairNic: nicFromNumber(reader.u32(at + PEER_RECORD.pairNic)),
    };
  });
}

export function decodeHosts(reader: PlanReader, hosts: number): PlanHost[] {
  const table = reader.section(HEADER.hostTable, STRIDE.host, 'hostTable');
  const strings = reader.section(HEADER.stringTable, STRIDE.string, 'stringTable');
  if (table.count !== hosts) throw new PlanError(`hostTable: ${table.count} records for ${hosts} hosts`);
  const nics = reader.section(HEADER.nicTable, STRIDE.nic, 'nicTable');
  const own = reader.u32(HEADER.hostIndex);
  let used = 0; // hosts that share NICs could make a small file fill the memory
  return Array.from({ length: hosts }, (_, index) => {
    const at = table.at(index);
    const text = (field: number): string => readString(reader, strings, at + field, `hostTable[${index}]`);
    const first = reader.u32(at + HOST_RECORD.firstNic);
    const count = reader.u32(at + HOST_RECORD.nicCount);
    used += count;
    if (Math.max(first + count, used) > nics.count)
      throw new PlanError(`hostTable[${index}]: NICs beyond the ${nics.count} there are`);
    return {
      name: text(HOST_RECORD.nameOffset),
      address: text(HOST_RECORD.addressOffset),
      nics: Array.from({ length: count }, (_nic, offset) => decodeNic(reader, nics.at(first + offset), strings)),
      gpuNics: index === own ? decodeGpuNics(reader) : [],
    };
  });
}

/** Without what the engine does not need to know. */
function decodeNic(reader: PlanReader, at: number, strings: SectionReader): PlanNic {
  return {
    name: readString(reader, strings, at + NIC_RECORD.nameOffset, 'nicTable'),
    address: readString(reader, strings, at + NIC_RECORD.addressOffset, 'nicTable'),
    port: reader.u32(at + NIC_RECORD.port),
    speedMbps: reader.u32(at + NIC_RECORD.speedMbps),
    pciPath: null,
    gpuDirect: reader.u8(at + NIC_RECORD.gpuDirect) !== 0,
    gpuDirectReason: '',
    gpuPaths: [],
  };
}

/** null: it has no name. */
export function decodeNetwork(reader: PlanReader): PlanNetwork | null {
  const strings = reader.section(HEADER.stringTable, STRIDE.string, 'stringTable');
  const name = readString(reader, strings, HEADER.networkOffset, 'network');
  if (name === '') return null;
  return { name, sockets: reader.u8(HEADER.sockets), socketThreads: reader.u8(HEADER.socketThreads) };
}

/** null: there are none. */
export function decodeAggregators(reader: PlanReader): PlanAggregators | null {
  const table = reader.section(HEADER.aggregatorTable, STRIDE.aggregator, 'aggregatorTable');
  if (table.count === 0) return null;
  const strings = reader.section(HEADER.stringTable, STRIDE.string, 'stringTable');
  return {
    token: Buffer.from(reader.bytes(HEADER.aggregatorToken, SEGMENT_TOKEN_BYTES)).toString('hex'),
    servers: Array.from({ length: table.count }, (_, index) => ({
      address: readString(reader, strings, table.at(index) + AGGREGATOR_RECORD.addressOffset, 'aggregatorTable'),
      port: reader.u32(table.at(index) + AGGREGATOR_RECORD.port),
    })),
  };
}

/** Whose offset lies at `at`, and its length behind that. */
function readString(reader: PlanReader, strings: SectionReader, at: number, what: string): string {
  const [offset, length] = [reader.u32(at), reader.u32(at + 4)];
  if (offset + length > strings.count)
    throw new PlanError(`${what}: a string beyond the ${strings.count} bytes there are`);
  return Buffer.from(reader.bytes(strings.at(offset), length)).toString('utf8');
}

/** Those of the host that the HostPlan is for. */
function decodeGpuNics(reader: PlanReader): GpuNic[] {
  const table = reader.section(HEADER.gpuNicTable, STRIDE.gpuNic, 'gpuNicTable');
  return Array.from({ length: table.count }, (_, index) => {
    const at = table.at(index);
    const card = at + GPU_NIC_RECORD.card;
    const verdict = (field: number): GpuDirectVerdict =>
      named(GPU_DIRECT_VERDICTS, reader.u8(at + field), `gpuNicTable[${index}]`);
    return {
      local: reader.u32(at + GPU_NIC_RECORD.local),
      card: reader.isOpenEnded(card) ? null : cardAddress(reader.u64(card, `gpuNicTable[${index}].card`)),
      path: Buffer.from(reader.bytes(at + GPU_NIC_RECORD.path, 4))
        .toString('latin1')
        .replaceAll('\0', ''),
      receives: verdict(GPU_NIC_RECORD.receives),
      sends: verdict(GPU_NIC_RECORD.sends),
    };
  });
}
