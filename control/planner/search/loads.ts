/** How much of each link is left while channels are laid over a machine. */
import { INTEL_ROOT_COMPLEX_FACTOR } from '../machine/constants.ts';
import type { MachineNode } from '../machine/node.ts';
import { distance, reverseLinks } from '../machine/path.ts';
import type { Path } from '../machine/path.ts';
import type { Routes } from '../machine/routes.ts';

/** What a flow along a path takes of links, for each MB/s of the flow. */
export interface Use {
  /** Of the path. */
  readonly distance: number;
  readonly hops: number;
  /** MB/s. */
  readonly bandwidth: number;
  /** Link indices and what each carries of the flow; docs/topology.md, "What a flow takes". */
  readonly links: Int32Array;
  readonly factors: Float64Array;
}

/** Before compute capability 8.0 a GPU answers what a NIC or processor writes with an eighth as much traffic back. */
const ANSWERS_OF_OLD_GPUS = 1 / 8;

export function useOf(from: MachineNode, path: Path, reverse: ReturnType<typeof reverseLinks>): Use {
  const isIntel =
    path.type === 'PHB' &&
    from.kind === 'gpu' &&
    path.links.some(({ to }) => to.kind === 'cpu' && to.architecture === 'x86_64' && to.vendor === 'intel');
  const links: number[] = [];
  const factors: number[] = [];
  for (const link of path.links) {
    const factor = link.kind === 'pci' && isIntel ? INTEL_ROOT_COMPLEX_FACTOR : 1;
    links.push(link.index);
    factors.push(factor);
    const back = reverse[link.index];
    if (back === undefined) continue;
    const { to } = link;
    const answers = to.kind === 'gpu' && to.computeCapability < 80 && from.kind !== 'gpu';
    const isPower = to.kind === 'cpu' && to.architecture === 'ppc64' && link.kind === 'nvlink';
    const share = (answers ? factor * ANSWERS_OF_OLD_GPUS : 0) + (isPower ? factor : 0);
    if (share === 0) continue;
    links.push(back.index);
    factors.push(share);
  }
  return {
    distance: distance(path.type),
    hops: path.links.length,
    bandwidth: path.bandwidth,
    links: Int32Array.from(links),
    factors: Float64Array.from(factors),
  };
}

/** All flows that a search may lay: between GPUs and NICs, by their places in the machine's lists. */
export interface Uses {
  /** [from][to] */
  readonly between: readonly (readonly Use[])[];
  /** [gpu][net] */
  readonly toNet: readonly (readonly Use[])[];
  /** [net][gpu] */
  readonly fromNet: readonly (readonly Use[])[];
}

export function usesOf(routes: Routes): Uses {
  const { machine } = routes;
  const { gpus, nets } = machine;
  const reverse = reverseLinks(machine);
  const table = (froms: readonly MachineNode[], tos: readonly MachineNode[]): Use[][] =>
    froms.map((from) => tos.map((to) => useOf(from, routes.path(from, to), reverse)));
  return { between: table(gpus, gpus), toNet: table(gpus, nets), fromNet: table(nets, gpus) };
}

export class Loads {
  /** MB/s, by link index. */
  readonly left: Int32Array;

  constructor(bandwidths: readonly number[]) {
    this.left = Int32Array.from(bandwidths);
  }

  /** False: not all links have so much left, and nothing has changed. */
  take({ links, factors }: Use, speed: number): boolean {
    for (let i = 0; i < links.length; i++) {
      const link = links[i] ?? 0;
      const load = Math.round(speed * (factors[i] ?? 1));
      const left = (this.left[link] ?? 0) - load;
      if (left < 0) {
        this.#giveFirst(links, factors, speed, i);
        return false;
      }
      this.left[link] = left;
    }
    return true;
  }

  give({ links, factors }: Use, speed: number): void {
    this.#giveFirst(links, factors, speed, links.length);
  }

  #giveFirst(links: Int32Array, factors: Float64Array, speed: number, count: number): void {
    for (let i = 0; i < count; i++) {
      const link = links[i] ?? 0;
      this.left[link] = (this.left[link] ?? 0) + Math.round(speed * (factors[i] ?? 1));
    }
  }
}
