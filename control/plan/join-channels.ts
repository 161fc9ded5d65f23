/** The tables of a HostPlan, rank by rank again. */
import type { ChannelParts, ChannelTables, Shape } from './channel-tables.ts';
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
    const shape = shapeAt(tables, host);
    if (shape === undefined) continue;
    const { ranks, rings } = shape;
    for (const local of rings.subarray(ring * ranks, (ring + 1) * ranks))
      joined.push(tables.members[first + local] ?? 0);
  }
  return joined;
}

function joinTree(tables: WrittenTables, { tree, hostTree }: ChannelParts): number[] {
  const joined = [...tables.members];
  const between = tables.hostTrees[hostTree];
  for (const [host, parent] of between?.parents.entries() ?? []) {
    const shape = shapeAt(tables, host);
    if (shape === undefined) continue;
    const { ranks, trees } = shape;
    const first = tables.firstMember[host] ?? 0;
    trees.subarray(tree * ranks, (tree + 1) * ranks).forEach((above, local) => {
      const rank = tables.members[first + local] ?? 0;
      const isTop = above === local && parent !== host;
      const there = isTop ? (tables.firstMember[parent] ?? 0) + (between?.attachments[host] ?? 0) : first + above;
      joined[rank] = tables.members[there] ?? 0;
    });
  }
  return joined;
}

function shapeAt({ shapes, shapeOf }: WrittenTables, host: number): Shape | undefined {
  return shapes[shapeOf[host] ?? 0];
}
