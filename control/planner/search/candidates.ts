/** What a search tries, and in which order: the most promising first, since its work is bounded. */
import type { GpuNode, NetNode } from '../machine/node.ts';
import { distance } from '../machine/path.ts';
import type { Routes } from '../machine/routes.ts';
import type { Pattern } from './graph.ts';
import { usesOf } from './loads.ts';
import type { Use, Uses } from './loads.ts';

/** Of one machine; nothing in it depends on an attempt. */
export interface Surroundings {
  readonly routes: Routes;
  readonly uses: Uses;
  /** MB/s of the links. */
  readonly bandwidths: readonly number[];
  /** MB/s of the NICs' ports, and the place of each net's port. */
  readonly ports: readonly number[];
  readonly portOf: readonly number[];
  /** MB/s, of each GPU's link to PCI Express. */
  readonly pciBandwidths: readonly number[];
}

export function surroundingsOf(routes: Routes): Surroundings {
  const { gpus, nets, links } = routes.machine;
  const names = [...new Set(nets.map(({ port }) => port))];
  return {
    routes,
    uses: usesOf(routes),
    bandwidths: links.map(({ bandwidth }) => bandwidth),
    ports: names.map((name) => nets.find(({ port }) => port === name)?.bandwidth ?? 0),
    portOf: nets.map(({ port }) => names.indexOf(port)),
    pciBandwidths: gpus.map((gpu) => gpu.links.find(({ kind }) => kind === 'pci')?.bandwidth ?? -1),
  };
}

/** Numbers are places in the machine's lists of GPUs and nets. */
export class Candidates {
  readonly gpus: number;
  readonly hasSwitch: boolean;
  readonly uses: Uses;
  readonly bandwidths: readonly number[];
  readonly ports: readonly number[];
  readonly portOf: readonly number[];
  /** MB/s of those by which channels may come in. */
  readonly usedPorts: readonly number[];
  /** Where channels come in. */
  readonly startNets: readonly number[];
  /** By net: the GPU that uses it first, or -1; and all that are nearest, that one first. */
  readonly localGpus: readonly number[];
  readonly firstGpus: readonly (readonly number[])[];
  readonly #pciBandwidths: readonly number[];
  readonly #netsOf: readonly (readonly number[])[];
  readonly #neighbours: Neighbours;
  readonly #next: (readonly number[])[] = [];
  readonly #towards: Towards[] = [];

  /** `distanceBetween`: the farthest NICs; `collnetOnly`: those that reduce. */
  constructor(surroundings: Surroundings, distanceBetween: number, collnetOnly: boolean) {
    const { routes, uses, bandwidths, ports, portOf, pciBandwidths } = surroundings;
    const { gpus, nets, nvswitch } = routes.machine;
    this.gpus = gpus.length;
    this.hasSwitch = nvswitch !== null;
    this.uses = uses;
    this.bandwidths = bandwidths;
    this.ports = ports;
    this.portOf = portOf;
    this.#pciBandwidths = pciBandwidths;
    this.#neighbours = neighboursOf(gpus.length);
    const isUsable = (net: number): boolean => !collnetOnly || (nets[net]?.collnet ?? false);
    this.startNets = orderedNets(routes, gpus, distanceBetween).filter(isUsable);
    this.usedPorts = [...new Set(this.startNets.map((net) => portOf[net] ?? 0))].map((port) => ports[port] ?? 0);
    this.#netsOf = gpus.map((gpu) => orderedNets(routes, [gpu], distanceBetween).filter(isUsable));
    this.localGpus = nets.map((net) => placeOf(gpus, routes.localGpu(net)));
    this.firstGpus = nets.map((net, place) => {
      const near = routes.nearest(net, gpus).map((gpu) => gpus.indexOf(gpu));
      const local = this.localGpus[place] ?? -1;
      return local === -1 ? near : [local, ...near.filter((gpu) => gpu !== local)];
    });
  }

  /** Where a channel may go out from a GPU. */
  netsOf(gpu: number): readonly number[] {
    return this.#netsOf[gpu] ?? [];
  }

  /** The other GPUs, in the order in which they are tried: widest paths first, then the shortest, then those that follow. */
  next(gpu: number, pattern: Pattern): readonly number[] {
    const preferred = this.#preferred(gpu, pattern);
    if (preferred !== null) return preferred;
    return (this.#next[gpu] ??= this.#others(gpu).toSorted((one, other) => this.#compareInside(gpu, one, other)));
  }

  /**
   * The same while the channel has to come back to its NIC: those near the NIC first if the next one hands over to it, else, where all are equally
   * good inside the host, last. `used`: of the channel, from `at` on.
   */
  nextTowards(
    gpu: number,
    net: number,
    isLast: boolean,
    pattern: Pattern,
    used: Readonly<Uint8Array>,
    at: number,
  ): readonly number[] {
    const preferred = this.#preferred(gpu, pattern);
    if (preferred !== null) return preferred;
    const towards = (this.#towards[gpu * this.portOf.length + net] ??= this.#sortTowards(gpu, net));
    return !isLast && this.#areAlike(gpu, used, at) ? towards.backward : towards.forward;
  }

  #sortTowards(gpu: number, net: number): Towards {
    const forward = this.#others(gpu).toSorted(
      (one, other) => this.#compareAtNet(net, one, other) || this.#compareInside(gpu, one, other),
    );
    return { forward, backward: forward.toReversed() };
  }

  #others(gpu: number): number[] {
    return Array.from({ length: this.gpus - 1 }, (_, i) => (gpu + i + 1) % this.gpus).filter(
      (other) => this.#between(gpu, other).hops > 0,
    );
  }

  #compareAtNet(net: number, one: number, other: number): number {
    const first = this.uses.fromNet[net]?.[one];
    const second = this.uses.fromNet[net]?.[other];
    if (first === undefined || second === undefined) return 0;
    return (
      gigabytes(second.bandwidth) - gigabytes(first.bandwidth) ||
      gigabytes(this.#pciBandwidths[other] ?? -1) - gigabytes(this.#pciBandwidths[one] ?? -1) ||
      first.hops - second.hops
    );
  }

  #compareInside(gpu: number, one: number, other: number): number {
    const first = this.#between(gpu, one);
    const second = this.#between(gpu, other);
    return gigabytes(second.bandwidth) - gigabytes(first.bandwidth) || first.hops - second.hops;
  }

  /** All GPUs that are not used yet, inside the host. */
  #areAlike(gpu: number, used: Readonly<Uint8Array>, at: number): boolean {
    let first = -1;
    for (let other = 0; other < this.gpus; other++) {
      if (used[at + other] !== 0 || this.#between(gpu, other).hops === 0) continue;
      if (first === -1) first = other;
      else if (this.#compareInside(gpu, first, other) !== 0) return false;
    }
    return true;
  }

  #between(gpu: number, other: number): Use {
    return this.uses.between[gpu]?.[other] ?? NOTHING;
  }

  /** NVSwitches carry most where each GPU talks to few others: only its neighbours in their order are tried. null: there is none. */
  #preferred(gpu: number, pattern: Pattern): readonly number[] | null {
    if (!this.hasSwitch) return null;
    const both = pattern === 'ring' ? this.#neighbours.backward : this.#neighbours.forward;
    return (pattern === 'tree' || pattern === 'collnetDirect' ? this.#neighbours.following : both)[gpu] ?? [];
  }
}

interface Towards {
  readonly forward: readonly number[];
  readonly backward: readonly number[];
}

/** By GPU: the one behind it, or both neighbours, one of them first. */
interface Neighbours {
  readonly following: readonly (readonly number[])[];
  readonly forward: readonly (readonly number[])[];
  readonly backward: readonly (readonly number[])[];
}

function neighboursOf(gpus: number): Neighbours {
  const all = Array.from({ length: gpus }, (_, gpu) => gpu);
  const following = (gpu: number): number => (gpu + 1) % gpus;
  const preceding = (gpu: number): number => (gpu + gpus - 1) % gpus;
  return {
    following: all.map((gpu) => [following(gpu)]),
    forward: all.map((gpu) => [...new Set([following(gpu), preceding(gpu)])]),
    backward: all.map((gpu) => [...new Set([preceding(gpu), following(gpu)])]),
  };
}

const NOTHING: Use = {
  distance: distance('DIS'),
  hops: 0,
  bandwidth: 0,
  links: Int32Array.of(),
  factors: Float64Array.of(),
};

function gigabytes(bandwidth: number): number {
  return Math.trunc(bandwidth / 1000);
}

function placeOf(gpus: readonly GpuNode[], gpu: GpuNode | null): number {
  return gpu === null ? -1 : gpus.indexOf(gpu);
}

/** Those that each GPU prefers, GPU by GPU; then all others, the nearest first. */
function orderedNets(routes: Routes, gpus: readonly GpuNode[], farthest: number): number[] {
  const { nets } = routes.machine;
  const found = new Set<NetNode>();
  for (const gpu of gpus) {
    const own = new Set<NetNode>();
    for (let channel = 0; channel < nets.length; channel++) {
      const net = routes.localNet(gpu, channel);
      if (net === null || own.has(net)) break;
      own.add(net);
      found.add(net);
    }
  }
  for (let type = 0; type <= farthest; type++) {
    for (const gpu of gpus) {
      for (const net of nets) if (distance(routes.path(gpu, net).type) === type) found.add(net);
    }
  }
  return [...found].map((net) => nets.indexOf(net));
}
