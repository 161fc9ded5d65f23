/** Paths from one node of a machine to another. */
import { LOCAL_BANDWIDTH } from './constants.ts';
import type { Machine, MachineLink, MachineNode } from './node.ts';

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
/** Places in PATH_TYPES. */
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
  readonly links: readonly MachineLink[];
}

/** Stands for a missing index. */
const NONE = -1;

export const NO_PATH: Path = { type: 'DIS', bandwidth: 0, links: [] };

/**
 * Paths of all nodes to one target: those with the fewest links, and among these the widest. A path crosses at most one GPU, only over NVLinks and
 * only to a GPU (`throughGpus`). The links of a path are computed on demand, because most paths are never needed.
 */
export class PathsTo {
  readonly #target: MachineNode;
  readonly #links: readonly MachineLink[];
  /** Index of the first link of a node's path, by node index; -1 if there is no path. */
  readonly #towards: Int32Array;
  readonly #lengths: Int32Array;
  readonly #bandwidths: Float64Array;
  /** Path types by node index, as indices into PATH_TYPES, which are distances. */
  readonly #types: Uint8Array;
  /** Intermediate node of a diverted path, by node index; -1 if not diverted; null if no path is. */
  #middles: Int32Array | null = null;
  readonly #paths: (Path | undefined)[] = [];

  constructor(target: MachineNode, { nodes, links }: Machine, reverse: ReverseLinks, throughGpus: boolean) {
    this.#target = target;
    this.#links = links;
    this.#lengths = new Int32Array(nodes.length);
    this.#towards = new Int32Array(nodes.length).fill(NONE);
    this.#types = new Uint8Array(nodes.length).fill(DISTANCES.DIS);
    this.#bandwidths = new Float64Array(nodes.length);
    this.#bandwidths[target.index] = LOCAL_BANDWIDTH;
    this.#types[target.index] = DISTANCES.LOC;
    const reached = [target];
    for (let i = 0; i < reached.length; i++) {
      const node = reached[i];
      if (node !== undefined) this.#goOn(node, reverse, throughGpus, reached);
    }
  }

  from({ index }: MachineNode): Path {
    return (this.#paths[index] ??= this.#write(index));
  }

  /** As that of `from`'s path. */
  distance({ index }: MachineNode): number {
    return this.#types[index] ?? DISTANCES.DIS;
  }

  /** As that of `from`'s path. */
  bandwidth({ index }: MachineNode): number {
    return this.#bandwidths[index] ?? 0;
  }

  /** Number of links of the shortest path; 0 if there is none. */
  length({ index }: MachineNode): number {
    return this.#lengths[index] ?? 0;
  }

  set({ index }: MachineNode, path: Path): void {
    this.#paths[index] = path;
    this.#types[index] = distance(path.type);
    this.#bandwidths[index] = path.bandwidth;
  }

  /** Diverts a path over node `middle`; its links are set on demand. */
  divert({ index }: MachineNode, middle: number, type: PathType, bandwidth: number): void {
    this.#middles ??= new Int32Array(this.#lengths.length).fill(NONE);
    this.#middles[index] = middle;
    this.#paths[index] = undefined;
    this.#types[index] = distance(type);
    this.#bandwidths[index] = bandwidth;
  }

  /** Index of the intermediate node of a diverted path whose links are not yet set; -1 if there is none. */
  unwrittenMiddle({ index }: MachineNode): number {
    return this.#paths[index] === undefined ? (this.#middles?.[index] ?? NONE) : NONE;
  }

  /** Extends the paths to the neighbours of `node`. */
  #goOn(node: MachineNode, reverse: ReverseLinks, throughGpus: boolean, reached: MachineNode[]): void {
    const { index, links } = node;
    const length = this.#lengths[index] ?? 0;
    const widest = this.#bandwidths[index] ?? 0;
    const type = this.#typeAt(index);
    const isThrough = node !== this.#target && node.kind === 'gpu';
    if (isThrough && !(throughGpus && length === 1)) return;
    for (let i = 0; i < links.length; i++) {
      const link = links[i];
      if (link === undefined) continue;
      const from = link.to;
      if (isThrough && (link.kind !== 'nvlink' || from.kind !== 'gpu')) continue;
      const known = from === this.#target ? 0 : (this.#lengths[from.index] ?? 0);
      const isNew = this.#towards[from.index] === NONE && from !== this.#target;
      if (!isNew && known <= length) continue;
      const bandwidth = Math.min(widest, link.bandwidth);
      const back = reverse[link.index];
      if (back === undefined || (this.#bandwidths[from.index] ?? 0) >= bandwidth) continue;
      this.#towards[from.index] = back.index;
      this.#lengths[from.index] = length + 1;
      this.#bandwidths[from.index] = bandwidth;
      this.#types[from.index] = distance(farther(type, stepType(link, type, isThrough)));
      if (isNew) reached.push(from);
    }
  }

  #write(index: number): Path {
    if (index === this.#target.index) return { type: 'LOC', bandwidth: LOCAL_BANDWIDTH, links: [] };
    const links: MachineLink[] = [];
    let link = this.#firstFrom(index);
    if (link === undefined) return NO_PATH;
    while (link !== undefined) {
      links.push(link);
      link = this.#firstFrom(link.to.index);
    }
    return { type: this.#typeAt(index), bandwidth: this.#bandwidths[index] ?? 0, links };
  }

  #firstFrom(index: number): MachineLink | undefined {
    return this.#links[this.#towards[index] ?? NONE];
  }

  #typeAt(index: number): PathType {
    return PATH_TYPES[this.#types[index] ?? DISTANCES.DIS] ?? 'DIS';
  }
}

function stepType({ kind, from, to }: MachineLink, rest: PathType, isThrough: boolean): PathType {
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

/** By link index: the link in the opposite direction. */
export type ReverseLinks = readonly (MachineLink | undefined)[];

export function reverseLinks({ links }: Machine): ReverseLinks {
  const reverse: (MachineLink | undefined)[] = [];
  for (let i = 0; i < links.length; i++) reverse.push(reverseOf(links[i]));
  return reverse;
}

function reverseOf(link: MachineLink | undefined): MachineLink | undefined {
  if (link === undefined) return undefined;
  const { from, to, kind } = link;
  for (let i = 0; i < to.links.length; i++) {
    const back = to.links[i];
    if (back?.to === from && back.kind === kind) return back;
  }
  return undefined;
}
