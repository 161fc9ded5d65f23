/** The tables of rings and trees, read back. */
import type { ChannelParts, HostTree, Shape } from './channel-tables.ts';
import { channelsOf } from './join-channels.ts';
import {
  CHANNEL_RECORD,
  HEADER,
  HOST_RECORD,
  HOST_RING_RECORD,
  HOST_TREE_RECORD,
  SHAPE_RECORD,
  STRIDE,
} from './layout.ts';
import type { PlanReader, SectionReader } from './plan-reader.ts';
import type { Channel } from './types.ts';
import { PlanError } from './validate.ts';

/** Of all different rings and trees together: a small file must not fill the memory. */
const MAX_ENTRIES = 2 ** 27;

/** Does not check the decoded ranks and hosts; validatePlan does. */
export function decodeChannels(reader: PlanReader, ranks: number, hosts: number): Channel[] {
  const section = (name: keyof typeof STRIDE & keyof typeof FIELDS): SectionReader =>
    reader.section(FIELDS[name], STRIDE[name], `${name}Table`);
  const members = listOf(reader, section('member'), 0, ranks, 'memberTable');
  const hostTable = section('host');
  const ofHosts = (field: number): Uint32Array =>
    Uint32Array.from({ length: hosts }, (_, host) => reader.u32(hostTable.at(host) + field));
  const channels = channelParts(reader, section('channel'));
  const different = new Set(
    channels.flatMap(({ ring, hostRing, tree, hostTree }) => [`r${ring} ${hostRing}`, `t${tree} ${hostTree}`]),
  );
  if (different.size * ranks > MAX_ENTRIES)
    throw new PlanError(`channelTable: ${different.size} different rings and trees of ${ranks} ranks are too many`);
  return channelsOf({
    members,
    firstMember: ofHosts(HOST_RECORD.firstMember),
    shapeOf: ofHosts(HOST_RECORD.shape),
    shapes: decodeShapes(reader, section('shape'), section('ring'), section('tree')),
    hostRings: decodeHostRings(reader, section('hostRing'), hosts),
    hostTrees: decodeHostTrees(reader, section('hostTree'), hosts),
    channels,
  });
}

const FIELDS = {
  host: HEADER.hostTable,
  member: HEADER.memberTable,
  channel: HEADER.channelTable,
  shape: HEADER.shapeTable,
  ring: HEADER.ringTable,
  tree: HEADER.treeTable,
  hostRing: HEADER.hostRingTable,
  hostTree: HEADER.hostTreeTable,
} as const;

function channelParts(reader: PlanReader, table: SectionReader): ChannelParts[] {
  if (table.count !== reader.u32(HEADER.channels))
    throw new PlanError(`channelTable: ${table.count} records for ${reader.u32(HEADER.channels)} channels`);
  return Array.from({ length: table.count }, (_, channel) => {
    const at = table.at(channel);
    return {
      ring: reader.u32(at + CHANNEL_RECORD.ring),
      hostRing: reader.u32(at + CHANNEL_RECORD.hostRing),
      tree: reader.u32(at + CHANNEL_RECORD.tree),
      hostTree: reader.u32(at + CHANNEL_RECORD.hostTree),
      rail: reader.u32(at + CHANNEL_RECORD.rail),
    };
  });
}

function decodeShapes(reader: PlanReader, shapes: SectionReader, rings: SectionReader, trees: SectionReader): Shape[] {
  let [ring, tree] = [0, 0];
  return Array.from({ length: shapes.count }, (_, index) => {
    const ranks = reader.u32(shapes.at(index) + SHAPE_RECORD.ranks);
    // Lists follow one another, as the engine demands.
    const shape = {
      ranks,
      rings: listOf(reader, rings, ring, ranks * reader.u32(HEADER.rings), `ringTable of shape ${index}`),
      trees: listOf(reader, trees, tree, ranks * reader.u32(HEADER.trees), `treeTable of shape ${index}`),
    };
    ring += shape.rings.length;
    tree += shape.trees.length;
    return shape;
  });
}

function decodeHostRings(reader: PlanReader, table: SectionReader, hosts: number): Uint32Array[] {
  const count = reader.u32(HEADER.hostRings);
  if (table.count !== count * hosts) throw new PlanError(`hostRingTable: ${table.count} records for ${count} rings`);
  return Array.from({ length: count }, (_, ring) =>
    Uint32Array.from({ length: hosts }, (_host, stop) =>
      reader.u32(table.at(ring * hosts + stop) + HOST_RING_RECORD.host),
    ),
  );
}

function decodeHostTrees(reader: PlanReader, table: SectionReader, hosts: number): HostTree[] {
  const count = reader.u32(HEADER.hostTrees);
  if (table.count !== count * hosts) throw new PlanError(`hostTreeTable: ${table.count} records for ${count} trees`);
  const fieldOf = (tree: number, field: number): Uint32Array =>
    Uint32Array.from({ length: hosts }, (_, host) => reader.u32(table.at(tree * hosts + host) + field));
  return Array.from({ length: count }, (_, tree) => ({
    parents: fieldOf(tree, HOST_TREE_RECORD.parent),
    attachments: fieldOf(tree, HOST_TREE_RECORD.attachment),
  }));
}

/** Entries of one u32. */
function listOf(reader: PlanReader, table: SectionReader, first: number, count: number, name: string): Uint32Array {
  if (first + count > table.count)
    throw new PlanError(`${name}: ${first + count} entries are needed, there are ${table.count}`);
  return Uint32Array.from({ length: count }, (_, index) => reader.u32(table.at(first + index)));
}
