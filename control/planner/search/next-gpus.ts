/** In which order a search tries the GPUs that a channel may go on to: the most promising first, since its work is bounded. */
import type { Machine } from '../machine/node.ts';
import type { Pattern } from './graph.ts';
import { NO_USE } from './loads.ts';
import type { Use, Uses } from './loads.ts';

/** Of one machine; numbers are indices in its lists of GPUs and nets. */
export class NextGpus {
  readonly #gpus: number;
  readonly #nets: number;
  readonly #uses: Uses;
  /** MB/s, of each GPU's link to PCI Express. */
  readonly #pciBandwidths: readonly number[];
  /** Where there are NVSwitches. */
  readonly #neighbours: Neighbours | null;
  readonly #next: (readonly number[])[] = [];
  readonly #towards: Towards[] = [];
  /** By GPU: inside the host all others are equally good. */
  readonly #allAlike: boolean[] = [];

  constructor({ gpus, nets, nvswitch }: Machine, uses: Uses) {
    this.#gpus = gpus.length;
    this.#nets = nets.length;
    this.#uses = uses;
    this.#pciBandwidths = gpus.map((gpu) => gpu.links.find(({ kind }) => kind === 'pci')?.bandwidth ?? -1);
    this.#neighbours = nvswitch === null ? null : neighboursOf(gpus.length);
  }

  /** The other GPUs: widest paths first, then the shortest, then those that follow. */
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
    const towards = (this.#towards[gpu * this.#nets + net] ??= this.#sortTowards(gpu, net));
    return !isLast && this.#areAlike(gpu, used, at) ? towards.backward : towards.forward;
  }

  #sortTowards(gpu: number, net: number): Towards {
    const forward = this.#others(gpu).toSorted(
      (one, other) => this.#compareAtNet(net, one, other) || this.#compareInside(gpu, one, other),
    );
    return { forward, backward: forward.toReversed() };
  }

  #others(gpu: number): number[] {
    const others: number[] = [];
    for (let i = 1; i < this.#gpus; i++) {
      const other = (gpu + i) % this.#gpus;
      if (this.#between(gpu, other).hops > 0) others.push(other);
    }
    return others;
  }

  #compareAtNet(net: number, one: number, other: number): number {
    const first = this.#uses.fromNet[net * this.#gpus + one];
    const second = this.#uses.fromNet[net * this.#gpus + other];
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
    // As most machines are: then it need not be looked at again for each choice.
    if ((this.#allAlike[gpu] ??= this.#areOthersAlike(gpu, NONE_USED, 0))) return true;
    return this.#areOthersAlike(gpu, used, at);
  }

  #areOthersAlike(gpu: number, used: Readonly<Uint8Array>, at: number): boolean {
    let first = -1;
    for (let other = 0; other < this.#gpus; other++) {
      if ((used[at + other] ?? 0) !== 0 || this.#between(gpu, other).hops === 0) continue;
      if (first === -1) first = other;
      else if (this.#compareInside(gpu, first, other) !== 0) return false;
    }
    return true;
  }

  #between(gpu: number, other: number): Use {
    return this.#uses.between[gpu * this.#gpus + other] ?? NO_USE;
  }

  /** NVSwitches carry most where each GPU talks to few others: only its neighbours in their order are tried. null: there is none. */
  #preferred(gpu: number, pattern: Pattern): readonly number[] | null {
    const neighbours = this.#neighbours;
    if (neighbours === null) return null;
    const both = pattern === 'ring' ? neighbours.backward : neighbours.forward;
    return (pattern === 'tree' || pattern === 'collnetDirect' ? neighbours.following : both)[gpu] ?? [];
  }
}

const NONE_USED = new Uint8Array();

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

function gigabytes(bandwidth: number): number {
  return Math.trunc(bandwidth / 1000);
}
