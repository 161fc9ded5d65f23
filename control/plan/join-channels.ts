/** The tables of a HostPlan, rank by rank again. */
import type { ChannelParts, ChannelTables, HostTree, Shape } from './channel-tables.ts';
import type { Channel } from './types.ts';

/** What follows from the others is not written down. */
type WrittenTables = Omit<ChannelTables, 'localIndex' | 'rings' | 'trees'>;

/** The rings and trees that the tables stand for. Channels of the same parts share their arrays. */
export function channelsOf(tables: WrittenTables): Channel[] {
  const rings = new Map<string, number[]>();
  const trees = new Map<string, number[]>();
  return tables.channels.map((parts) => {
    const ringKey = `${parts.ring} ${parts.hostRing}`;
    const treeKey = `${parts.tree} ${parts.hostTree}`;
    const ring = rings.get(ringKey) ?? joinRing(tables, parts);
    const tree = trees.get(treeKey) ?? joinTree(tables, parts);
    rings.set(ringKey, ring);
    trees.set(treeKey, tree);
    return { ring, tree, rail: parts.rail };
  });
}

function joinRing(tables: WrittenTables, { ring, hostRing }: ChannelParts): number[] {
  const joined: number[] = [];
  for (const host of tables.hostRings[hostRing] ?? []) {
    const first = tables.firstMember[host] ?? 0;
    const { ranks, rings } = tables.shapes[tables.shapeOf[host] ?? 0] ?? NO_SHAPE;
    for (const local of rings.subarray(ring * ranks, (ring + 1) * ranks))
      joined.push(tables.members[first + local] ?? 0);
  }
  return joined;
}

function joinTree(tables: WrittenTables, { tree, hostTree }: ChannelParts): number[] {
  const joined = Array.from(tables.members, () => 0);
  const { parents, attachments } = tables.hostTrees[hostTree] ?? NO_HOST_TREE;
  parents.forEach((parent, host) => {
    const first = tables.firstMember[host] ?? 0;
    const { ranks, trees } = tables.shapes[tables.shapeOf[host] ?? 0] ?? NO_SHAPE;
    trees.subarray(tree * ranks, (tree + 1) * ranks).forEach((above, local) => {
      const rank = tables.members[first + local] ?? 0;
      const isTop = above === local && parent !== host;
      const there = isTop ? (tables.firstMember[parent] ?? 0) + (attachments[host] ?? 0) : first + above;
      joined[rank] = tables.members[there] ?? 0;
    });
  });
  return joined;
}

const NO_SHAPE: Shape = { ranks: 0, rings: new Uint32Array(0), trees: new Uint32Array(0) };
const NO_HOST_TREE: HostTree = { parents: new Uint32Array(0), attachments: new Uint32Array(0) };
