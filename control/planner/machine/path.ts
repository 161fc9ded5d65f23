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
 * The paths of all nodes to `target`, by node index: with the fewest links, and among those the widest. GPUs are passed through only over
 * NVLinks, to a GPU, and one at most (`throughGpus`).
 */
export function pathsTo(target: MachineNode, machine: Machine, reverse: ReverseLinks, throughGpus: boolean): Path[] {
  const paths: Path[] = machine.nodes.map(() => NO_PATH);
  paths[target.index] = { type: 'LOC', bandwidth: LOCAL_BANDWIDTH, links: [] };
  for (let frontier: readonly MachineNode[] = [target]; frontier.length > 0; ) {
    const next = new Set<MachineNode>();
    for (const node of frontier) {
      const rest = paths[node.index] ?? NO_PATH;
      for (const link of node.links) {
        const from = link.to;
        const isThrough = node !== target && node.kind === 'gpu';
        if (isThrough && !(throughGpus && link.kind === 'nvlink' && from.kind === 'gpu' && rest.links.length === 1))
          continue;
        const back = reverse[link.index];
        if (back === undefined) continue;
        const known = paths[from.index] ?? NO_PATH;
        const bandwidth = Math.min(rest.bandwidth, link.bandwidth);
        const isNew = known === NO_PATH || known.links.length > rest.links.length;
        if (!isNew || known.bandwidth >= bandwidth) continue;
        paths[from.index] = {
          type: farther(rest.type, stepType(link, rest, isThrough)),
          bandwidth,
          links: [back, ...rest.links],
        };
        next.add(from);
      }
    }
    frontier = [...next];
  }
  return paths;
}

function stepType({ kind, from, to }: Link, rest: Path, isThrough: boolean): PathType {
  switch (kind) {
    case 'local':
    case 'net':
      return 'LOC';
    case 'nvlink':
      return isThrough && rest.type === 'NVL' ? 'NVB' : 'NVL';
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

export function reverseLinks(machine: Machine): ReverseLinks {
  return machine.links.map(({ from, to, kind }) => to.links.find((link) => link.to === from && link.kind === kind));
}
