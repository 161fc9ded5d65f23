/**
 * The channels of a whole job: what each rank's neighbours are in every channel. Nothing is written down per rank but where it is, so that a
 * hundred thousand ranks cost no more than their numbers: neighbours follow from the host's shape and its index among the hosts.
 *
 * Channels are the hosts' common ones, twice: the second half goes the same rings, and the other one of the two trees.
 */
import type { FoundChannel, Graph } from '../search/graph.ts';
import { agree } from './agreement.ts';
import type { Agreement } from './agreement.ts';
import { positionInDoubleTree } from './double-tree.ts';
import type { HostShape } from './host-shape.ts';
import { ANY_CHANNELS } from '../input/limits.ts';
import type { ChannelLimits } from '../input/limits.ts';

export interface ClusterHost {
  /** Index into the shapes. */
  readonly shape: number;
  /** By the GPU's index in the shape's machine. */
  readonly ranks: ArrayLike<number>;
}

/** A neighbour, and the NICs (indices in the machines' lists) of the connection; -1: on the same host. */
export interface Neighbour {
  readonly rank: number;
  readonly ownNic: number;
  readonly otherNic: number;
}

export interface HostRingNeighbours {
  readonly previous: Neighbour;
  readonly next: Neighbour;
}

export interface TreeNeighbours {
  readonly parent: Neighbour | null;
  readonly children: readonly Neighbour[];
}

export class Cluster {
  readonly shapes: readonly HostShape[];
  readonly hosts: readonly ClusterHost[];
  readonly ranks: number;
  readonly ring: Agreement;
  readonly tree: Agreement;
  /** After doubling. */
  readonly channels: number;
  /** By rank: its host, and its GPU there. */
  readonly #hostOf: Int32Array;
  readonly #gpuOf: Int32Array;
  /** By shape and channel before doubling: GPU → its position in the order. */
  readonly #ringPositions: readonly (readonly Int32Array[])[];
  readonly #treePositions: readonly (readonly Int32Array[])[];

  constructor(shapes: readonly HostShape[], hosts: readonly ClusterHost[], { min, max }: ChannelLimits = ANY_CHANNELS) {
    this.shapes = shapes;
    this.hosts = hosts;
    this.ranks = hosts.reduce((sum, { ranks }) => sum + ranks.length, 0);
    const ring = agree(shapes.map((shape) => shape.ring));
    const tree = agree(shapes.map((shape) => shape.tree));
    const channels = Math.min(ring.channels, tree.channels);
    this.ring = { ...ring, channels };
    this.tree = { ...tree, channels };
    this.channels = Math.max(1, Math.min(Math.max(channels * 2, min), max));
    this.#hostOf = new Int32Array(this.ranks);
    this.#gpuOf = new Int32Array(this.ranks);
    hosts.forEach(({ ranks }, host) => {
      for (let gpu = 0; gpu < ranks.length; gpu++) {
        const rank = ranks[gpu] ?? 0;
        this.#hostOf[rank] = host;
        this.#gpuOf[rank] = gpu;
      }
    });
    this.#ringPositions = shapes.map((shape) => shape.ring.channels.map(positionsIn));
    this.#treePositions = shapes.map((shape) => shape.tree.channels.map(positionsIn));
  }

  hostOf(rank: number): number {
    return this.#hostOf[rank] ?? -1;
  }

  /** All ranks in ring order, from the first host on. */
  ringOrder(channel: number): number[] {
    return this.hosts.flatMap((_, host) => {
      const { order } = this.#ringChannel(host, channel);
      return order.map((gpu) => this.#rankAt(host, gpu));
    });
  }

  ringNeighbours(rank: number, channel: number): HostRingNeighbours {
    const host = this.hostOf(rank);
    const { order } = this.#ringChannel(host, channel);
    const gpu = this.#gpuOf[rank] ?? 0;
    const position = this.#ringPositions[this.#shapeIndex(host)]?.[this.#ringIndex(host, channel)]?.[gpu] ?? 0;
    return {
      previous: this.#ringStep(host, channel, position - 1, order),
      next: this.#ringStep(host, channel, position + 1, order),
    };
  }

  /** The GPU at `position` of a host's order; before its beginning or behind its end the neighbouring host's nearest. */
  #ringStep(host: number, channel: number, position: number, order: readonly number[]): Neighbour {
    const gpu = order[position];
    if (gpu !== undefined) return local(this.#rankAt(host, gpu));
    const isNext = position > 0;
    const count = this.hosts.length;
    const other = (host + (isNext ? 1 : count - 1)) % count;
    const there = this.#ringChannel(other, channel);
    const rank = this.#rankAt(other, (isNext ? there.order[0] : there.order.at(-1)) ?? 0);
    if (other === host) return local(rank);
    const nets = this.#ringChannel(host, channel).nets ?? [-1, -1];
    const otherNets = there.nets ?? [-1, -1];
    return isNext
      ? { rank, ownNic: nets[1], otherNic: otherNets[0] }
      : { rank, ownNic: nets[0], otherNic: otherNets[1] };
  }

  treeNeighbours(rank: number, channel: number): TreeNeighbours {
    const host = this.hostOf(rank);
    const { order, nets } = this.#treeChannel(host, channel);
    const gpu = this.#gpuOf[rank] ?? 0;
    const index = channel % this.tree.channels;
    const position = this.#treePositions[this.#shapeIndex(host)]?.[index]?.[gpu] ?? 0;
    const which = Math.floor(channel / this.tree.channels) % 2 === 0 ? 0 : 1;
    const tree = positionInDoubleTree(this.hosts.length, host, which);
    const children: Neighbour[] = [];
    const below = order[position + 1];
    if (below !== undefined) children.push(local(this.#rankAt(host, below)));
    for (const child of tree.children) {
      if (position !== childPosition(this.#graphOfTree(host), order.length, child.number)) continue;
      children.push(this.#far(child.position, channel, 0, nets?.[1] ?? -1));
    }
    if (position > 0) return { parent: local(this.#rankAt(host, order[position - 1] ?? 0)), children };
    if (tree.parent === -1) return { parent: null, children };
    const parentOrder = this.#treeChannel(tree.parent, channel).order;
    const at = childPosition(this.#graphOfTree(tree.parent), parentOrder.length, tree.childNumber);
    return { parent: this.#far(tree.parent, channel, at, nets?.[0] ?? -1), children };
  }

  /** The GPU at `position` of another host's chain. Parents are reached by their outgoing NIC. */
  #far(host: number, channel: number, position: number, ownNic: number): Neighbour {
    const { order, nets } = this.#treeChannel(host, channel);
    return { rank: this.#rankAt(host, order[position] ?? 0), ownNic, otherNic: nets?.[position === 0 ? 0 : 1] ?? -1 };
  }

  #shapeIndex(host: number): number {
    return this.hosts[host]?.shape ?? 0;
  }

  #graphOfTree(host: number): Graph {
    const shape = this.shapes[this.#shapeIndex(host)];
    if (shape === undefined) throw new RangeError(`there is no host ${host}`);
    return shape.tree;
  }

  #ringChannel(host: number, channel: number): FoundChannel {
    return this.shapes[this.#shapeIndex(host)]?.ring.channels[this.#ringIndex(host, channel)] ?? NO_CHANNEL;
  }

  #treeChannel(host: number, channel: number): FoundChannel {
    return this.#graphOfTree(host).channels[channel % this.tree.channels] ?? NO_CHANNEL;
  }

  /** Channels in pairs swap their NICs at every second host: so they leave by the NIC where the next host's come in. */
  #ringIndex(host: number, channel: number): number {
    const index = channel % this.ring.channels;
    const partner = index ^ 1;
    return this.ring.crossNic === 2 && host % 2 === 1 && partner < this.ring.channels ? partner : index;
  }

  #rankAt(host: number, gpu: number): number {
    return this.hosts[host]?.ranks[gpu] ?? -1;
  }
}

const NO_CHANNEL: FoundChannel = { order: [], nets: null };

function local(rank: number): Neighbour {
  return { rank, ownNic: -1, otherNic: -1 };
}

function positionsIn({ order }: FoundChannel): Int32Array {
  const positions = new Int32Array(order.length);
  order.forEach((gpu, position) => (positions[gpu] = position));
  return positions;
}

/** Where in a host's chain a child on another host hangs. */
function childPosition({ pattern }: Graph, gpus: number, number: 0 | 1): number {
  const second = Math.min(1, gpus - 1);
  if (pattern === 'splitTree') return second;
  return pattern === 'balancedTree' && number === 0 ? second : 0;
}
