/**
 * Rings and trees of a communicator as a HostPlan has them: not rank by rank, but the order of hosts, and for each kind of host (shape) the
 * order of its ranks. So they take little room however many hosts there are.
 */
import type { CommPlan } from './types.ts';

/** By shape: what its ranks, as local indices, make of every ring and tree. */
export interface Shape {
  readonly ranks: number;
  /** Of each ring the local indices in its order; one behind the other. */
  readonly rings: Uint32Array;
  /** Of each tree the parents' local indices; of the host's top its own. */
  readonly trees: Uint32Array;
}

/** Of each host its parent, and the local index of the rank there that its top hangs on; of the root itself. */
export interface HostTree {
  readonly parents: Uint32Array;
  readonly attachments: Uint32Array;
}

/** Numbers of a channel's parts. */
export interface ChannelParts {
  readonly ring: number;
  readonly hostRing: number;
  readonly tree: number;
  readonly hostTree: number;
  readonly rail: number;
}

export interface ChannelTables {
  /** The ranks of the first host, ascending, then those of the next. */
  readonly members: Uint32Array;
  /** By host, into members. */
  readonly firstMember: Uint32Array;
  /** By rank: its index among the ranks of its host. */
  readonly localIndex: Uint32Array;
  /** By host. */
  readonly shapeOf: Uint32Array;
  readonly shapes: readonly Shape[];
  /** Of each shape. */
  readonly rings: number;
  readonly trees: number;
  /** Each the hosts in its order. */
  readonly hostRings: readonly Uint32Array[];
  readonly hostTrees: readonly HostTree[];
  readonly channels: readonly ChannelParts[];
}

/** The plan must be valid (validate.ts). */
export function channelTables(plan: CommPlan): ChannelTables {
  const placing = placeRanks(plan);
  const rings = new Distinct<readonly number[]>();
  const trees = new Distinct<readonly number[]>();
  const indices = plan.channels.map(({ ring, tree, rail }) => [rings.add(ring), trees.add(tree), rail] as const);
  const cutRings = rings.all.map((ring) => cutRing(plan, placing, ring));
  const cutTrees = trees.all.map((tree) => cutTree(plan, placing, tree));
  const hostRings = new Distinct<Uint32Array>(textOf);
  const hostTrees = new Distinct<HostTree>(({ parents, attachments: hangs }) => textOf(parents) + textOf(hangs));
  const hostRingOf = cutRings.map(({ hosts }) => hostRings.add(hosts));
  const hostTreeOf = cutTrees.map(({ hosts }) => hostTrees.add(hosts));
  return {
    ...placing,
    ...shapesOf(
      placing.firstMember,
      plan.peers.length,
      cutRings.map(({ members }) => members),
      cutTrees.map(({ members }) => members),
    ),
    rings: cutRings.length,
    trees: cutTrees.length,
    hostRings: hostRings.all,
    hostTrees: hostTrees.all,
    channels: indices.map(([ring, tree, rail]) => ({
      ring,
      hostRing: hostRingOf[ring] ?? 0,
      tree,
      hostTree: hostTreeOf[tree] ?? 0,
      rail,
    })),
  };
}

type Placing = Pick<ChannelTables, 'members' | 'firstMember' | 'localIndex'>;

function placeRanks({ peers, hosts }: CommPlan): Placing {
  const counts = new Uint32Array(hosts.length);
  const localIndex = Uint32Array.from(peers, ({ host }) => {
    const index = counts[host] ?? 0;
    counts[host] = index + 1;
    return index;
  });
  const firstMember = new Uint32Array(hosts.length);
  for (let host = 1; host < hosts.length; host++)
    firstMember[host] = (firstMember[host - 1] ?? 0) + (counts[host - 1] ?? 0);
  const members = new Uint32Array(peers.length);
  peers.forEach(({ host }, rank) => (members[(firstMember[host] ?? 0) + (localIndex[rank] ?? 0)] = rank));
  return { members, firstMember, localIndex };
}

/** `members`: as the member table is cut, of each host what it makes of the ring or tree, in local indices. */
interface Cut<Hosts> {
  readonly hosts: Hosts;
  readonly members: Uint32Array;
}

function cutRing({ peers, hosts }: CommPlan, placing: Placing, ring: readonly number[]): Cut<Uint32Array> {
  const hostOf = (rank: number): number => peers[rank]?.host ?? 0;
  const order = new Uint32Array(hosts.length);
  const members = new Uint32Array(ring.length);
  const start = startOfHost(ring, hostOf);
  let stops = 0;
  let last = -1;
  let next = 0;
  for (let step = 0; step < ring.length; step++) {
    const rank = ring[(start + step) % ring.length] ?? 0;
    const host = hostOf(rank);
    if (host !== last) {
      order[stops++] = host;
      last = host;
      next = placing.firstMember[host] ?? 0;
    }
    members[next++] = placing.localIndex[rank] ?? 0;
  }
  return { hosts: order, members };
}

/** Where a ring, which may be written down from any of its ranks on, comes to a host. */
export function startOfHost(ring: readonly number[], hostOf: (rank: number) => number): number {
  const last = hostOf(ring.at(-1) ?? 0);
  const start = ring.findIndex((rank, index) => hostOf(rank) !== (index === 0 ? last : hostOf(ring[index - 1] ?? 0)));
  return Math.max(start, 0);
}

function cutTree({ peers, hosts }: CommPlan, placing: Placing, tree: readonly number[]): Cut<HostTree> {
  const parents = Uint32Array.from(hosts, (_, host) => host);
  const attachments = new Uint32Array(hosts.length);
  const members = new Uint32Array(tree.length);
  tree.forEach((parent, rank) => {
    const host = peers[rank]?.host ?? 0;
    const above = peers[parent]?.host ?? 0;
    const local = placing.localIndex[rank] ?? 0;
    members[(placing.firstMember[host] ?? 0) + local] = above === host ? (placing.localIndex[parent] ?? 0) : local;
    if (above === host) return;
    parents[host] = above;
    attachments[host] = placing.localIndex[parent] ?? 0;
  });
  return { hosts: { parents, attachments }, members };
}

/** Hosts that make the same of all rings and trees are of one shape. */
function shapesOf(
  firstMember: Uint32Array,
  ranks: number,
  rings: readonly Uint32Array[],
  trees: readonly Uint32Array[],
): Pick<ChannelTables, 'shapes' | 'shapeOf'> {
  const shapes = new Distinct<Shape>(({ rings: all, trees: above }) => `${textOf(all)}/${textOf(above)}`);
  const shapeOf = Uint32Array.from(firstMember, (first, host) => {
    const end = firstMember[host + 1] ?? ranks;
    return shapes.add({ ranks: end - first, rings: partsOf(rings, first, end), trees: partsOf(trees, first, end) });
  });
  return { shapes: shapes.all, shapeOf };
}

function partsOf(lists: readonly Uint32Array[], first: number, end: number): Uint32Array {
  const parts = new Uint32Array(lists.length * (end - first));
  lists.forEach((list, index) => parts.set(list.subarray(first, end), index * (end - first)));
  return parts;
}

function textOf(numbers: Uint32Array): string {
  return Buffer.from(numbers.buffer, numbers.byteOffset, numbers.byteLength).toString('latin1');
}

/** Numbers things in the order in which they come: the same thing (by its text, or itself) has one number. */
class Distinct<Value> {
  readonly all: Value[] = [];
  readonly #numbers = new Map<unknown, number>();
  readonly #keyOf: (value: Value) => unknown;

  constructor(keyOf: (value: Value) => unknown = (value) => value) {
    this.#keyOf = keyOf;
  }

  add(value: Value): number {
    const key = this.#keyOf(value);
    const known = this.#numbers.get(key) ?? this.all.push(value) - 1;
    this.#numbers.set(key, known);
    return known;
  }
}
