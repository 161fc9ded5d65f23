/** Plans for machines and clusters that nobody has built: whatever they are, the plan can be carried out. */
import { expect, it } from 'vitest';
import { Collnet } from '../../control/planner/cluster/collnet.ts';
import { Cluster } from '../../control/planner/cluster/cluster.ts';
import type { Neighbour } from '../../control/planner/cluster/cluster.ts';
import { positionInDoubleTree } from '../../control/planner/cluster/double-tree.ts';
import { Hierarchy } from '../../control/planner/cluster/hierarchy.ts';
import { shapeOf } from '../../control/planner/cluster/host-shape.ts';
import { planCluster } from '../../control/planner/cluster/plan-cluster.ts';
import { channelOfPair, pointToPoint } from '../../control/planner/cluster/point-to-point.ts';
import { buildMachine } from '../../control/planner/machine/build.ts';
import { MachineRoutes } from '../../control/planner/machine/routes.ts';
import { isOverloaded, linkLoads } from '../../control/planner/verify/link-loads.ts';
import { eightGpus } from '../rig/eight-gpus.ts';
import { seededRandom } from '../rig/random.ts';
import { randomTopology } from '../rig/random-topology.ts';

/** Of the simple order, which is taken where no path is wide enough for any speed: it promises nothing. */
const NO_PROMISE = 100;
const CASES_PER_TEST = 50;
const TESTS = Number(process.env['NCCLRUN_TEST_REPEAT'] ?? 40);

it.each(Array.from({ length: TESTS }, (_, block) => block))('random plans of block %i are valid', (block) => {
  for (let seed = block * CASES_PER_TEST; seed < (block + 1) * CASES_PER_TEST; seed++) expectValid(seed);
});

function expectValid(seed: number): void {
  const random = seededRandom(seed);
  const kinds = 1 + random(3);
  const acrossHosts = kinds > 1 || random(2) === 0;
  const shapes = Array.from({ length: kinds }, () =>
    shapeOf(new MachineRoutes(buildMachine(randomTopology(random))), acrossHosts),
  );
  for (const { routes, ring, tree, collnetChain, collnetDirect } of shapes) {
    for (const graph of [ring, tree, collnetChain, collnetDirect]) {
      if (graph === null || graph.inside <= NO_PROMISE) continue;
      expect({ seed, overloaded: linkLoads(routes, graph).filter(isOverloaded) }).toEqual({ seed, overloaded: [] });
    }
  }
  let ranks = 0;
  const count = acrossHosts ? Math.max(kinds, 2) + random(4) : 1;
  const hosts = Array.from({ length: count }, (_, host) => {
    const shape = host % kinds;
    const gpus = shapes[shape]?.routes.machine.gpus ?? [];
    return { shape, ranks: gpus.map(() => ranks++) };
  });
  const cluster = new Cluster(shapes, hosts);
  for (let channel = 0; channel < cluster.channels; channel++) {
    expectRing(cluster, channel, seed);
    expectTree(cluster, channel, seed);
  }
  expectPairs(cluster);
  const hierarchy = Hierarchy.of(cluster);
  if (hierarchy !== null) expectRails(cluster, hierarchy);
  const collnet = Collnet.of(cluster);
  if (collnet !== null) expectChains(cluster, collnet);
}

/** Each rail goes once through every host, as a ring and as two trees, and both ends of an edge name the same NICs. */
function expectRails(cluster: Cluster, hierarchy: Hierarchy): void {
  for (let rank = 0; rank < cluster.ranks; rank++) {
    const rail = hierarchy.railOf(rank);
    const { previous, next } = hierarchy.ringNeighbours(rank);
    expect(hierarchy.ringNeighbours(next.rank).previous).toEqual(seenFrom(next, rank));
    expect(hierarchy.railOf(previous.rank)).toBe(rail);
    expect(cluster.hostOf(next.rank)).toBe((cluster.hostOf(rank) + 1) % cluster.hosts.length);
    for (const which of [0, 1] as const) {
      const { parent, children } = hierarchy.treeNeighbours(rank, which);
      for (const child of children) {
        expect(hierarchy.railOf(child.rank)).toBe(rail);
        expect(hierarchy.treeNeighbours(child.rank, which).parent).toEqual(seenFrom(child, rank));
      }
      let top = rank;
      for (let above = parent; above !== null; above = hierarchy.treeNeighbours(top, which).parent) top = above.rank;
      expect(hierarchy.treeNeighbours(top, which).parent).toBeNull();
      expect(hierarchy.railOf(top)).toBe(rail);
    }
  }
}

function seenFrom({ ownNic, otherNic }: Neighbour, rank: number): Neighbour {
  return { rank, ownNic: otherNic, otherNic: ownNic };
}

/** Both ends of a message find the same channel, and its parts different ones. */
function expectPairs(cluster: Cluster): void {
  const messages = pointToPoint(cluster);
  expect(messages.perPeer).toBeLessThanOrEqual(messages.channels);
  for (let rank = 0; rank < cluster.ranks; rank++) {
    for (let peer = 0; peer < cluster.ranks; peer++) {
      const parts = Array.from({ length: messages.perPeer }, (_, part) => {
        const sent = channelOfPair(messages, cluster.ranks, [rank, peer], 'sends', part);
        expect(channelOfPair(messages, cluster.ranks, [peer, rank], 'receives', part)).toBe(sent);
        return sent;
      });
      expect(new Set(parts).size).toBe(messages.perPeer);
    }
  }
}

/** On every host a chain from the master to the last, the same on both halves of the channels. */
function expectChains(cluster: Cluster, collnet: Collnet): void {
  const half = collnet.channels / 2;
  for (let channel = 0; channel < collnet.channels; channel++) {
    cluster.hosts.forEach(({ ranks }) => {
      const places = Array.from(ranks, (rank) => ({ rank, ...collnet.positionOf(rank, channel) }));
      const masters = places.filter(({ up }) => up === cluster.ranks);
      expect(masters.map(({ rank }) => rank)).toEqual([masters[0]?.receiveMaster]);
      expect(places.filter(({ down }) => down === -1)).toHaveLength(1);
      for (const { rank, up, direction, depth } of places) {
        expect({ direction, depth }).toEqual({ direction: channel < half ? 'up' : 'down', depth: ranks.length });
        if (up !== cluster.ranks) expect(places.find((other) => other.rank === up)?.down).toBe(rank);
        expect(collnet.positionOf(rank, (channel + half) % collnet.channels).up).toBe(up);
      }
    });
  }
}

/** Every rank once; both ends of an edge name each other, and the same NICs. */
function expectRing(cluster: Cluster, channel: number, seed: number): void {
  const order = cluster.ringOrder(channel);
  expect({ seed, order: order.toSorted((one, other) => one - other) }).toEqual({ seed, order: [...order.keys()] });
  expect(order).toHaveLength(cluster.ranks);
  order.forEach((rank, place) => {
    const { next } = cluster.ringNeighbours(rank, channel);
    expect(next.rank).toBe(order[(place + 1) % order.length]);
    expectSameEdge(rank, next, cluster.ringNeighbours(next.rank, channel).previous);
  });
}

/** One root, to which all others lead. */
function expectTree(cluster: Cluster, channel: number, seed: number): void {
  let roots = 0;
  for (let rank = 0; rank < cluster.ranks; rank++) {
    const { parent, children } = cluster.treeNeighbours(rank, channel);
    for (const child of children) {
      const back = cluster.treeNeighbours(child.rank, channel).parent;
      if (back === null) throw new Error(`seed ${seed}: rank ${child.rank} has no parent, but is a child of ${rank}`);
      expectSameEdge(rank, child, back);
    }
    if (parent === null) roots += 1;
    else expect(cluster.treeNeighbours(parent.rank, channel).children.map((child) => child.rank)).toContain(rank);
    let steps = 0;
    for (let at: Neighbour | null = parent; at !== null; steps++) {
      expect(steps).toBeLessThan(cluster.ranks);
      at = cluster.treeNeighbours(at.rank, channel).parent;
    }
  }
  expect({ seed, roots }).toEqual({ seed, roots: 1 });
}

function expectSameEdge(rank: number, there: Neighbour, back: Neighbour): void {
  expect(back).toEqual({ rank, ownNic: there.otherNic, otherNic: there.ownNic });
}

it('a host has children in both trees only if the number of hosts is odd', () => {
  for (let count = 1; count < 200; count++) {
    const inner = [0, 0];
    for (let place = 0; place < count; place++) {
      const both = ([0, 1] as const).map((which) => positionInDoubleTree(count, place, which));
      both.forEach(({ children }, which) => (inner[which] = (inner[which] ?? 0) + children.length));
      const busy = both.filter(({ children }) => children.length > 1).length;
      expect({ count, place, busy: busy <= 1 || count % 2 === 1 }).toEqual({ count, place, busy: true });
    }
    expect(inner).toEqual([count - 1, count - 1]);
  }
});

it.each([
  [1, 1, 0],
  [2, 1, 0],
  [1, 2, 1],
  [2, 8, 1],
])('GPUs of %d hosts with %d each send to others of their host if there are any', (hosts, ranksPerHost, sends) => {
  const { situation } = planCluster([{ system: eightGpus(), hosts, ranksPerHost }]);
  expect(Math.sign(situation.linkBandwidth)).toBe(sends);
  expect([situation.hosts, situation.ranks]).toEqual([hosts, hosts * ranksPerHost]);
});

it('the slowest host’s NVLinks count', () => {
  const alone = { system: eightGpus(), hosts: 1, ranksPerHost: 1 };
  const whole = { system: eightGpus(), hosts: 1, ranksPerHost: 8 };
  expect(planCluster([whole, alone]).situation.linkBandwidth).toBe(0);
});
