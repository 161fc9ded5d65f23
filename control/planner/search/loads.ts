/** How much of each link is left while channels are laid over a machine. */
import { INTEL_ROOT_COMPLEX_FACTOR } from '../machine/constants.ts';
import type { Link, MachineNode } from '../machine/node.ts';
import { distance, reverseLinks } from '../machine/path.ts';
import type { Path, ReverseLinks } from '../machine/path.ts';
import type { Routes } from '../machine/routes.ts';

/** What a flow along a path takes of links, for each MB/s of the flow. */
export interface Use {
  /** Of the path. */
  readonly distance: number;
  readonly hops: number;
  /** MB/s. */
  readonly bandwidth: number;
  /** Link indices and what each carries of the flow; docs/topology.md, "What a flow takes". First those of the path itself, then answers. */
  readonly links: Int32Array;
  readonly factors: Float64Array;
}

/** Before compute capability 8.0 a GPU answers what a NIC or processor writes with an eighth as much traffic back. */
const ANSWERS_OF_OLD_GPUS = 1 / 8;

export function useOf(from: MachineNode, path: Path, reverse: ReverseLinks): Use {
  const isIntel =
    path.type === 'PHB' &&
    from.kind === 'gpu' &&
    path.links.some(({ to }) => to.kind === 'cpu' && to.architecture === 'x86_64' && to.vendor === 'intel');
  const factors = path.links.map(({ kind }) => (kind === 'pci' && isIntel ? INTEL_ROOT_COMPLEX_FACTOR : 1));
  const answers = path.links.flatMap((link, i) => {
    const back = reverse[link.index];
    const share = answerShare(from, link) * (factors[i] ?? 1);
    return back === undefined || share === 0 ? [] : [{ link: back.index, share }];
  });
  return {
    distance: distance(path.type),
    hops: path.links.length,
    bandwidth: path.bandwidth,
    links: Int32Array.from([...path.links.map(({ index }) => index), ...answers.map(({ link }) => link)]),
    factors: Float64Array.from([...factors, ...answers.map(({ share }) => share)]),
  };
}

/** What comes back over a link for what goes over it. */
function answerShare(from: MachineNode, { to, kind }: Link): number {
  if (to.kind === 'gpu' && to.computeCapability < 80 && from.kind !== 'gpu') return ANSWERS_OF_OLD_GPUS;
  return to.kind === 'cpu' && to.architecture === 'ppc64' && kind === 'nvlink' ? 1 : 0;
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

  /** False: not all links have so much left, and nothing has changed. `count`: of the use's links, the first. */
  take({ links, factors }: Use, speed: number, count = links.length): boolean {
    for (let i = 0; i < count; i++) {
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
