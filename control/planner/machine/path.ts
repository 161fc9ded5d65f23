/** The way from one node of a machine to another. */
import { LOCAL_BANDWIDTH } from './constants.ts';
import type { Link, Machine, MachineNode } from './node.ts';

/**
 * What a path goes through, the nearest first, under NCCL's names: the same device; NVLink; NVLink through another GPU; C2C; one PCI switch; several;
 * C2C and then PCI (to a NIC); NVLink to a GPU which then uses its NIC; the host bridge of a processor; the link between processors; a network;
 * no path.
 */
export const PATH_TYPES = ['LOC', 'NVL', 'NVB', 'C2C', 'PIX', 'PXB', 'P2C', 'PXN', 'PHB', 'SYS', 'NET', 'DIS'] as const;
export type PathType = (typeof PATH_TYPES)[number];

export function distance(type: PathType): number {
  return DISTANCES[type];
}
const DISTANCES: Readonly<Record<PathType, number>> = {
  LOC: 0,
  NVL: 1,
  NVB: 2,
  C2C: 3,
  PIX: 4,
  PXB: 5,
  P2C: 6,
  PXN: 7,
  PHB: 8,
  SYS: 9,
  NET: 10,
  DIS: 11,
};

export function farther(one: PathType, other: PathType): PathType {
  return distance(one) > distance(other) ? one : other;
}

export interface Path {
  readonly type: PathType;
  /** Of its slowest link, in MB/s; 0: there is no path. */
  readonly bandwidth: number;
  readonly links: readonly Link[];
}

export const NO_PATH: Path = { type: 'DIS', bandwidth: 0, links: [] };

/**
 * The paths of all nodes to one: with the fewest links, and among those the widest. GPUs are passed through only over NVLinks, to a GPU, and one at
 * most (`throughGpus`). What a path goes through is written down when somebody asks for it: most of them nobody does.
 */
export class PathsTo {
  readonly #target: MachineNode;
  /** By node index: the first link of its path; undefined: it has none. */
  readonly #towards: (Link | undefined)[] = [];
  readonly #lengths: Int32Array;
  readonly #bandwidths: number[] = [];
  readonly #types: PathType[] = [];
  readonly #paths: (Path | undefined)[] = [];

  constructor(target: MachineNode, { nodes }: Machine, reverse: ReverseLinks, throughGpus: boolean) {
    this.#target = target;
    this.#lengths = new Int32Array(nodes.length);
    for (let node = 0; node < nodes.length; node++) {
      this.#towards.push(undefined);
      this.#types.push('DIS');
      this.#bandwidths.push(0);
      this.#paths.push(undefined);
    }
    this.#bandwidths[target.index] = LOCAL_BANDWIDTH;
    this.#types[target.index] = 'LOC';
    const reached = [target];
    for (let i = 0; i < reached.length; i++) {
      const node = reached[i];
      if (node !== undefined) this.#goOn(node, reverse, throughGpus, reached);
    }
  }

  from({ index }: MachineNode): Path {
    return (this.#paths[index] ??= this.#write(index));
  }

  set({ index }: MachineNode, path: Path): void {
    this.#paths[index] = path;
  }

  /** From the neighbours of `node` by way of it. */
  #goOn(node: MachineNode, reverse: ReverseLinks, throughGpus: boolean, reached: MachineNode[]): void {
    const { index, links } = node;
    const length = this.#lengths[index] ?? 0;
    const widest = this.#bandwidths[index] ?? 0;
    const type = this.#types[index] ?? 'DIS';
    const isThrough = node !== this.#target && node.kind === 'gpu';
    if (isThrough && !(throughGpus && length === 1)) return;
    for (let i = 0; i < links.length; i++) {
      const link = links[i];
      if (link === undefined) continue;
      const from = link.to;
      if (isThrough && (link.kind !== 'nvlink' || from.kind !== 'gpu')) continue;
      const known = from === this.#target ? 0 : (this.#lengths[from.index] ?? 0);
      const isNew = this.#towards[from.index] === undefined && from !== this.#target;
      if (!isNew && known <= length) continue;
      const bandwidth = Math.min(widest, link.bandwidth);
      const back = reverse[link.index];
      if (back === undefined || (this.#bandwidths[from.index] ?? 0) >= bandwidth) continue;
      this.#towards[from.index] = back;
      this.#lengths[from.index] = length + 1;
      this.#bandwidths[from.index] = bandwidth;
      this.#types[from.index] = farther(type, stepType(link, type, isThrough));
      if (isNew) reached.push(from);
    }
  }

  #write(index: number): Path {
    if (index === this.#target.index) return { type: 'LOC', bandwidth: LOCAL_BANDWIDTH, links: [] };
    const links: Link[] = [];
    let link = this.#towards[index];
    if (link === undefined) return NO_PATH;
    while (link !== undefined) {
      links.push(link);
      link = this.#towards[link.to.index];
    }
    return { type: this.#types[index] ?? 'DIS', bandwidth: this.#bandwidths[index] ?? 0, links };
  }
}

function stepType({ kind, from, to }: Link, rest: PathType, isThrough: boolean): PathType {
  switch (kind) {
    case 'local':
    case 'net':
      return 'LOC';
    case 'nvlink':
      return isThrough && rest === 'NVL' ? 'NVB' : 'NVL';
    case 'c2c':
      return 'C2C';
    case 'socket':
      return 'SYS';
    case 'pci':
      if (from.kind === 'cpu' || to.kind === 'cpu') return 'PHB';
      return from.kind === 'pci' && to.kind === 'pci' ? 'PXB' : 'PIX';
    default:
      return unreachable(kind);
  }
}

function unreachable(kind: never): never {
  throw new RangeError(`no such link: ${String(kind)}`);
}

/** By link index: the same link the other way. */
export type ReverseLinks = readonly (Link | undefined)[];

export function reverseLinks({ links }: Machine): ReverseLinks {
  const reverse: (Link | undefined)[] = [];
  for (let i = 0; i < links.length; i++) reverse.push(reverseOf(links[i]));
  return reverse;
}

function reverseOf(link: Link | undefined): Link | undefined {
  if (link === undefined) return undefined;
  const { from, to, kind } = link;
  for (let i = 0; i < to.links.length; i++) {
    const back = to.links[i];
    if (back?.to === from && back.kind === kind) return back;
  }
  return undefined;
}
