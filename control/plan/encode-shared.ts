/** The tables of a HostPlan that are the same on every host of the communicator. */
import { channelTables } from './channel-tables.ts';
import type { ChannelTables } from './channel-tables.ts';
import { writeChannels } from './encode-channels.ts';
import {
  AGGREGATOR_RECORD,
  HEADER,
  HOST_RECORD,
  NIC_RECORD,
  PEER_RECORD,
  PLAN_HEADER_BYTES,
  STRIDE,
} from './layout.ts';
import { writeTuning } from './encode-tuning.ts';
import { nicNumber } from './network.ts';
import type { PlanNic } from './network.ts';
import type { CommPlan } from './types.ts';

/** Sections in their order, with the offset of each one's location in the header. */
export const SHARED_SECTIONS = [
  ['host', HEADER.hostTable],
  ['peer', HEADER.peerTable],
  ['member', HEADER.memberTable],
  ['channel', HEADER.channelTable],
  ['shape', HEADER.shapeTable],
  ['ring', HEADER.ringTable],
  ['tree', HEADER.treeTable],
  ['hostRing', HEADER.hostRingTable],
  ['hostTree', HEADER.hostTreeTable],
  ['tuning', HEADER.tuningTable],
  ['variant', HEADER.variantTable],
  ['string', HEADER.stringTable],
  ['nic', HEADER.nicTable],
  ['aggregator', HEADER.aggregatorTable],
] as const;
type SharedName = (typeof SHARED_SECTIONS)[number][0];

/** `at` bytes from the start of the HostPlan. */
interface SharedSection {
  readonly at: number;
  readonly count: number;
}

export interface SharedTables {
  readonly bytes: Uint8Array;
  readonly section: (name: SharedName) => SharedSection;
  readonly channels: ChannelTables;
  /** Offset and length of the network's name among the strings. */
  readonly network: StringRange;
}

type StringRange = readonly [offset: number, bytes: number];

export function encodeSharedTables(plan: CommPlan): SharedTables {
  const channels = channelTables(plan);
  const strings = packStrings(plan);
  const { section, end } = layOut({
    host: plan.hosts.length,
    peer: plan.peers.length,
    member: plan.peers.length,
    channel: plan.channels.length,
    shape: channels.shapes.length,
    ring: channels.shapes.reduce((sum, { rings }) => sum + rings.length, 0),
    tree: channels.shapes.reduce((sum, { trees }) => sum + trees.length, 0),
    hostRing: channels.hostRings.length * plan.hosts.length,
    hostTree: channels.hostTrees.length * plan.hosts.length,
    tuning: plan.tuning.length,
    variant: plan.tuning.reduce((sum, row) => sum + row.variants.length, 0),
    string: strings.bytes.length,
    nic: plan.hosts.reduce((sum, { nics }) => sum + nics.length, 0),
    aggregator: strings.aggregators.length,
  });
  const bytes = new Uint8Array(end - PLAN_HEADER_BYTES);
  const view = new DataView(bytes.buffer);
  const start = (name: SharedName): number => section(name).at - PLAN_HEADER_BYTES;
  writeHosts(view, start('host'), strings.hosts, channels);
  writeNics(view, start('nic'), strings.hosts);
  writeAggregators(view, start('aggregator'), strings.aggregators);
  writePeers(view, start('peer'), plan, channels.localIndex);
  writeChannels(bytes, start, channels);
  writeTuning(view, start('tuning'), start('variant'), plan.tuning);
  bytes.set(strings.bytes, start('string'));
  return { bytes, section, channels, network: strings.network };
}

/** One section behind the other, each from a multiple of 8 on. */
function layOut(counts: Readonly<Record<SharedName, number>>): {
  readonly section: SharedTables['section'];
  readonly end: number;
} {
  const starts = new Map<SharedName, number>();
  let end = PLAN_HEADER_BYTES;
  for (const [name] of SHARED_SECTIONS) {
    starts.set(name, end);
    end = Math.ceil((end + counts[name] * STRIDE[name]) / 8) * 8;
  }
  return { section: (name) => ({ at: starts.get(name) ?? 0, count: counts[name] }), end };
}

interface PackedStrings {
  readonly bytes: Uint8Array;
  readonly hosts: readonly PackedHost[];
  readonly network: StringRange;
  readonly aggregators: readonly { readonly address: StringRange; readonly port: number }[];
}

interface PackedHost {
  readonly name: StringRange;
  readonly address: StringRange;
  readonly nics: readonly { readonly nic: PlanNic; readonly name: StringRange; readonly address: StringRange }[];
}

function packStrings(plan: CommPlan): PackedStrings {
  const parts: Buffer[] = [];
  let length = 0;
  const add = (text: string): StringRange => {
    const part = Buffer.from(text, 'utf8');
    parts.push(part);
    length += part.length;
    return [length - part.length, part.length];
  };
  const hosts = plan.hosts.map(({ name, address, nics }) => ({
    name: add(name),
    address: add(address),
    nics: nics.map((nic) => ({ nic, name: add(nic.name), address: add(nic.address) })),
  }));
  const network = add(plan.network?.name ?? '');
  const servers = plan.aggregators?.servers ?? [];
  const aggregators = servers.map(({ address, port }) => ({ address: add(address), port }));
  return { bytes: Buffer.concat(parts, length), hosts, network, aggregators };
}

function writeHosts(
  view: DataView,
  start: number,
  hosts: PackedStrings['hosts'],
  { shapeOf, firstMember }: ChannelTables,
): void {
  let firstNic = 0;
  hosts.forEach(({ name, address, nics }, index) => {
    const at = start + index * STRIDE.host;
    writeString(view, at + HOST_RECORD.nameOffset, name);
    writeString(view, at + HOST_RECORD.addressOffset, address);
    view.setUint32(at + HOST_RECORD.firstNic, firstNic, true);
    view.setUint32(at + HOST_RECORD.nicCount, nics.length, true);
    firstNic += nics.length;
    view.setUint32(at + HOST_RECORD.shape, shapeOf[index] ?? 0, true);
    view.setUint32(at + HOST_RECORD.firstMember, firstMember[index] ?? 0, true);
  });
}

/** In a record and in the header: an offset, then a length. */
export function writeString(view: DataView, at: number, [offset, bytes]: StringRange): void {
  view.setUint32(at, offset, true);
  view.setUint32(at + 4, bytes, true);
}

function writeNics(view: DataView, start: number, hosts: PackedStrings['hosts']): void {
  for (const [index, { nic, name, address }] of hosts.flatMap(({ nics }) => nics).entries()) {
    const at = start + index * STRIDE.nic;
    writeString(view, at + NIC_RECORD.nameOffset, name);
    writeString(view, at + NIC_RECORD.addressOffset, address);
    view.setUint32(at + NIC_RECORD.speedMbps, nic.speedMbps, true);
    view.setUint32(at + NIC_RECORD.port, nic.port, true);
    view.setUint8(at + NIC_RECORD.gpuDirect, nic.gpuDirect ? 1 : 0);
  }
}

function writeAggregators(view: DataView, start: number, aggregators: PackedStrings['aggregators']): void {
  for (const [index, { address, port }] of aggregators.entries()) {
    const at = start + index * STRIDE.aggregator;
    writeString(view, at + AGGREGATOR_RECORD.addressOffset, address);
    view.setUint32(at + AGGREGATOR_RECORD.port, port, true);
  }
}

function writePeers(view: DataView, start: number, plan: CommPlan, localIndex: Uint32Array): void {
  plan.peers.forEach((peer, rank) => {
    const at = start + rank * STRIDE.peer;
    view.setUint32(at + PEER_RECORD.host, peer.host, true);
    view.setUint32(at + PEER_RECORD.localIndex, localIndex[rank] ?? 0, true);
    view.setUint32(at + PEER_RECORD.listenPort, peer.listenPort, true);
    view.setUint32(at + PEER_RECORD.pairNic, nicNumber(peer.pairNic), true);
  });
}
