/**
 * Direct inside hosts, rings or trees between: the ranks of a host reduce among themselves, each an equal part, and every part goes from host to
 * host on a rail of its own, the ranks with the same local index, each by the NIC next to it. Hosts have to have equally many ranks.
 */
import { distance } from '../machine/path.ts';
import type { PathType } from '../machine/path.ts';
import type { Cluster, HostRingNeighbours, TreeNeighbours } from './cluster.ts';
import { positionInDoubleTree } from './double-tree.ts';
import type { HostShape } from './host-shape.ts';

/** A rank's path to the network. */
interface RailEnd {
  /** Place in the machine's list of nets. */
  readonly nic: number;
  /** MB/s, where all of the NIC's ranks use it at once. */
  readonly bandwidth: number;
  readonly type: PathType;
}

export class Hierarchy {
  readonly rails: number;
  /** Of the slowest rail, MB/s, and the farthest path to a NIC. */
  readonly bandwidth: number;
  readonly type: PathType;
  readonly #cluster: Cluster;
  /** By shape and GPU. */
  readonly #ends: readonly (readonly RailEnd[])[];

  /** null: there is one host, or one rank on each, or hosts have different numbers of them, or some rank no NIC. */
  static of(cluster: Cluster): Hierarchy | null {
    const [first] = cluster.hosts;
    const rails = first?.ranks.length ?? 0;
    if (cluster.hosts.length < 2 || rails < 2 || cluster.hosts.some(({ ranks }) => ranks.length !== rails)) return null;
    const ends = cluster.shapes.map(endsOf);
    return ends.some((own) => own.length < rails) ? null : new Hierarchy(cluster, rails, ends);
  }

  private constructor(cluster: Cluster, rails: number, ends: readonly (readonly RailEnd[])[]) {
    const all = ends.flat();
    this.#cluster = cluster;
    this.#ends = ends;
    this.rails = rails;
    this.bandwidth = Math.min(...all.map((end) => end.bandwidth));
    this.type = all.reduce<PathType>((far, { type }) => (distance(type) > distance(far) ? type : far), 'LOC');
  }

  /** The rail of a rank: its GPU's index on its host. */
  railOf(rank: number): number {
    const ranks = this.#cluster.hosts[this.#cluster.hostOf(rank)]?.ranks ?? [];
    return Array.from(ranks).indexOf(rank);
  }

  /** The NICs of a host's rails, in their order. */
  ends(host: number): readonly RailEnd[] {
    return this.#ends[this.#cluster.hosts[host]?.shape ?? 0] ?? [];
  }

  ringNeighbours(rank: number): HostRingNeighbours {
    const host = this.#cluster.hostOf(rank);
    const { length: hosts } = this.#cluster.hosts;
    return {
      previous: this.#neighbour(rank, (host + hosts - 1) % hosts),
      next: this.#neighbour(rank, (host + 1) % hosts),
    };
  }

  /** `which`: of the two trees, each for half of the data. */
  treeNeighbours(rank: number, which: 0 | 1): TreeNeighbours {
    const { parent, children } = positionInDoubleTree(this.#cluster.hosts.length, this.#cluster.hostOf(rank), which);
    return {
      parent: parent === -1 ? null : this.#neighbour(rank, parent),
      children: children.map((child) => this.#neighbour(rank, child.position)),
    };
  }

  #neighbour(rank: number, host: number) {
    const rail = this.railOf(rank);
    const nicOn = (one: number): number => this.ends(one)[rail]?.nic ?? -1;
    return {
      rank: this.#cluster.hosts[host]?.ranks[rail] ?? -1,
      ownNic: nicOn(this.#cluster.hostOf(rank)),
      otherNic: nicOn(host),
    };
  }
}

/** By GPU; fewer than there are GPUs where one has no NIC. */
function endsOf({ routes }: HostShape): RailEnd[] {
  const { gpus, nets } = routes.machine;
  const nics = gpus.map((gpu) => routes.localNets(gpu)[0] ?? null);
  return gpus.flatMap((gpu, index) => {
    const nic = nics[index] ?? null;
    if (nic === null) return [];
    // Ports of one card share what it carries.
    const sharers = nics.filter((other) => other?.port === nic.port).length;
    const path = routes.path(gpu, nic);
    const bandwidth = Math.min(path.bandwidth, nic.bandwidth / sharers);
    return [{ nic: nets.indexOf(nic), bandwidth, type: path.type }];
  });
}
