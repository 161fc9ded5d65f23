/**
 * CollNet: the network itself reduces what one GPU of each host sends. A chain of the host's GPUs leads to that GPU, the master, on half of the
 * channels; on the other half the same chain leads back from it.
 */
import { agree } from './agreement.ts';
import type { Cluster } from './cluster.ts';
import type { FoundChannel, Graph } from '../search/graph.ts';

interface CollnetPosition {
  /** Towards the network on this channel, or back. */
  readonly direction: 'up' | 'down';
  /** The rank nearer to the network; of the master the number of ranks, which stands for the network. */
  readonly up: number;
  /** The rank farther from it; -1: the last. */
  readonly down: number;
  /** GPUs in the chain. */
  readonly depth: number;
  /** The ranks of this host that receive from and send to the network. */
  readonly receiveMaster: number;
  readonly sendMaster: number;
  /** Place of the NIC in the host's list. */
  readonly nic: number;
}

export class Collnet {
  readonly #cluster: Cluster;
  readonly #chains: readonly Graph[];
  /** Of one half. */
  readonly #half: number;

  /** null: some host has no chain, or there is one host alone. */
  static of(cluster: Cluster): Collnet | null {
    const chains = cluster.shapes.flatMap(({ collnetChain }) => (collnetChain === null ? [] : [collnetChain]));
    if (cluster.hosts.length < 2 || chains.length < cluster.shapes.length) return null;
    return new Collnet(cluster, chains);
  }

  private constructor(cluster: Cluster, chains: readonly Graph[]) {
    this.#cluster = cluster;
    this.#chains = chains;
    this.#half = Math.min(agree(chains).channels, Math.floor(cluster.channels / 2));
  }

  /** After doubling; an operation counts half of them. */
  get channels(): number {
    return this.#half * 2;
  }

  positionOf(rank: number, channel: number): CollnetPosition {
    const host = this.#cluster.hostOf(rank);
    const { ranks, shape } = this.#cluster.hosts[host] ?? { ranks: [], shape: 0 };
    const chain = this.#chains[shape];
    const { order, nets } = chain?.channels[channel % this.#half] ?? NO_CHANNEL;
    const position = order.findIndex((gpu) => ranks[gpu] === rank);
    const rankAt = (at: number): number => ranks[order[at] ?? -1] ?? -1;
    const sender = chain?.pattern === 'splitTree' ? Math.min(1, order.length - 1) : 0;
    return {
      direction: channel < this.#half ? 'up' : 'down',
      up: position === 0 ? this.#cluster.ranks : rankAt(position - 1),
      down: rankAt(position + 1),
      depth: order.length,
      receiveMaster: rankAt(0),
      sendMaster: rankAt(sender),
      nic: nets?.[0] ?? -1,
    };
  }
}

const NO_CHANNEL: FoundChannel = { order: [], nets: null };
