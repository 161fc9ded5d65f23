/** The tables of a HostPlan that are the same on every host of the communicator. */
import { channelTables } from './channel-tables.ts';
import type { ChannelTables } from './channel-tables.ts';
import { writeChannels } from './encode-channels.ts';
import {
  ALGORITHMS,
  AS_MESSAGES,
  COLLECTIVES,
  VARIANT_RECORD,
  HEADER,
  HOST_RECORD,
  PEER_RECORD,
  PLAN_HEADER_BYTES,
  PRECONDITIONS,
  PROTOCOLS,
  STRIDE,
  TUNING_RECORD,
} from './layout.ts';
import type { CommPlan, TuningRow, Variant } from './types.ts';
import { writeU64 } from './u64.ts';

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
}

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
  });
  const bytes = new Uint8Array(end - PLAN_HEADER_BYTES);
  const view = new DataView(bytes.buffer);
  const start = (name: SharedName): number => section(name).at - PLAN_HEADER_BYTES;
  writeHosts(view, start('host'), strings.hosts, channels);
  writePeers(view, start('peer'), plan, channels.localIndex);
  writeChannels(bytes, start, channels);
  writeTuning(view, start('tuning'), start('variant'), plan.tuning);
  bytes.set(strings.bytes, start('string'));
  return { bytes, section, channels };
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
  /** Per host: offset and length of its name, offset and length of its address. */
  readonly hosts: readonly (readonly [number, number, number, number])[];
}

function packStrings(plan: CommPlan): PackedStrings {
  const parts: Buffer[] = [];
  let length = 0;
  const add = (text: string): [number, number] => {
    const part = Buffer.from(text, 'utf8');
    parts.push(part);
    length += part.length;
    return [length - part.length, part.length];
  };
  const hosts = plan.hosts.map((host) => [...add(host.name), ...add(host.address)] as const);
  return { bytes: Buffer.concat(parts, length), hosts };
}

function writeHosts(
  view: DataView,
  start: number,
  hosts: PackedStrings['hosts'],
  { shapeOf, firstMember }: ChannelTables,
): void {
  hosts.forEach(([nameOffset, nameBytes, addressOffset, addressBytes], index) => {
    const at = start + index * STRIDE.host;
    view.setUint32(at + HOST_RECORD.nameOffset, nameOffset, true);
    view.setUint32(at + HOST_RECORD.nameBytes, nameBytes, true);
    view.setUint32(at + HOST_RECORD.addressOffset, addressOffset, true);
    view.setUint32(at + HOST_RECORD.addressBytes, addressBytes, true);
    view.setUint32(at + HOST_RECORD.shape, shapeOf[index] ?? 0, true);
    view.setUint32(at + HOST_RECORD.firstMember, firstMember[index] ?? 0, true);
  });
}

function writePeers(view: DataView, start: number, plan: CommPlan, localIndex: Uint32Array): void {
  plan.peers.forEach((peer, rank) => {
    const at = start + rank * STRIDE.peer;
    view.setUint32(at + PEER_RECORD.host, peer.host, true);
    view.setUint32(at + PEER_RECORD.localIndex, localIndex[rank] ?? 0, true);
    view.setUint32(at + PEER_RECORD.listenPort, peer.listenPort, true);
  });
}

function writeTuning(view: DataView, rowsAt: number, variantsAt: number, rows: readonly TuningRow[]): void {
  let variantIndex = 0;
  // The engine finds the rows of a collective by its number.
  const sorted = rows.toSorted((one, other) => numberOf(one) - numberOf(other));
  sorted.forEach((row, index) => {
    const at = rowsAt + index * STRIDE.tuning;
    view.setUint8(at + TUNING_RECORD.collective, COLLECTIVES.indexOf(row.collective));
    view.setUint32(at + TUNING_RECORD.firstVariant, variantIndex, true);
    view.setUint32(at + TUNING_RECORD.variantCount, row.variants.length, true);
    if (row.upToBytes === null) view.setBigUint64(at + TUNING_RECORD.upToBytes, 0xffff_ffff_ffff_ffffn, true);
    else writeU64(view, at + TUNING_RECORD.upToBytes, row.upToBytes);
    for (const entry of row.variants) writeVariant(view, variantsAt + variantIndex++ * STRIDE.variant, entry);
  });
}

function numberOf(row: TuningRow): number {
  return COLLECTIVES.indexOf(row.collective);
}

function writeVariant(view: DataView, at: number, variant: Variant): void {
  view.setUint8(at + VARIANT_RECORD.algorithm, ALGORITHMS.indexOf(variant.algorithm));
  view.setUint8(at + VARIANT_RECORD.protocol, PROTOCOLS.indexOf(variant.protocol));
  view.setUint16(at + VARIANT_RECORD.channels, variant.channels, true);
  view.setUint32(at + VARIANT_RECORD.threads, variant.threads, true);
  writeU64(view, at + VARIANT_RECORD.chunkBytes, variant.chunkBytes);
  const bits = variant.requires.reduce((mask, name) => mask | (1 << PRECONDITIONS.indexOf(name)), 0);
  view.setUint32(at + VARIANT_RECORD.requires, bits, true);
  view.setFloat32(at + VARIANT_RECORD.predictedMicroseconds, variant.predictedMicroseconds, true);
  const perMebibyte = at + VARIANT_RECORD.predictedMicrosecondsPerMebibyte;
  view.setUint32(at + VARIANT_RECORD.flags, variant.asMessages ? AS_MESSAGES : 0, true);
  view.setFloat32(perMebibyte, variant.predictedMicrosecondsPerMebibyte, true);
}
