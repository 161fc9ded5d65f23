/** What flows take of links, and how much of each link is left while channels are laid over a machine. */
import { INTEL_ROOT_COMPLEX_FACTOR } from '../machine/constants.ts';
import type { MachineLink, MachineNode } from '../machine/node.ts';
import { distance } from '../machine/path.ts';
import type { Path, ReverseLinks } from '../machine/path.ts';
import type { MachineRoutes } from '../machine/routes.ts';

/** What a flow along a path takes of links: docs/topology.md, "What a flow takes". */
export interface Use {
  /** Of the path. */
  readonly distance: number;
  readonly hops: number;
  /** MB/s. */
  readonly bandwidth: number;
  /** Positions in the tables of all uses: from `first` on the links of the path itself, then, up to `end`, answers. */
  readonly first: number;
  readonly end: number;
  /** It takes what it carries, of each link. */
  readonly isEven: boolean;
}

/** All flows that a search may lay: between GPUs and NICs, by their indices in the machine's lists. */
export interface Uses {
  /** [from × GPUs + to] */
  readonly between: readonly Use[];
  /** [gpu × nets + net] */
  readonly toNet: readonly Use[];
  /** [net × GPUs + gpu] */
  readonly fromNet: readonly Use[];
  /** Link indices, of all uses one behind the other: one table is made faster, and read faster, than one for each of many uses. */
  readonly links: Int32Array;
  /** What these links carry for each MB/s of the flow. */
  readonly factors: Float64Array;
}

/** Of what is not there. */
export const NO_USE: Use = { distance: distance('DIS'), hops: 0, bandwidth: 0, first: 0, end: 0, isEven: true };

export function usesOf(routes: MachineRoutes): Uses {
  const { gpus, nets } = routes.machine;
  const links = linksBetween(routes, gpus, gpus) + linksBetween(routes, gpus, nets) + linksBetween(routes, nets, gpus);
  // Each link, and an answer over it.
  const tables = new Tables(routes, 2 * links);
  return {
    between: tables.all(gpus, gpus),
    toNet: tables.all(gpus, nets),
    fromNet: tables.all(nets, gpus),
    links: tables.links,
    factors: tables.factors,
  };
}

function linksBetween(routes: MachineRoutes, sources: readonly MachineNode[], targets: readonly MachineNode[]): number {
  let links = 0;
  sources.forEach((from) => {
    targets.forEach((to) => (links += routes.path(from, to).links.length));
  });
  return links;
}

/** Before compute capability 8.0 a GPU answers what a NIC or processor writes with an eighth as much traffic back. */
const ANSWERS_OF_OLD_GPUS = 1 / 8;

class Tables {
  readonly links: Int32Array;
  readonly factors: Float64Array;
  readonly #routes: MachineRoutes;
  readonly #reverse: ReverseLinks;
  #end = 0;

  constructor(routes: MachineRoutes, entries: number) {
    this.#routes = routes;
    this.#reverse = routes.reverse;
    this.links = new Int32Array(entries);
    this.factors = new Float64Array(entries);
  }

  all(sources: readonly MachineNode[], targets: readonly MachineNode[]): Use[] {
    const uses: Use[] = [];
    sources.forEach((from) => {
      targets.forEach((to) => uses.push(this.#add(from, this.#routes.path(from, to))));
    });
    return uses;
  }

  #add(from: MachineNode, path: Path): Use {
    const first = this.#end;
    const { type, bandwidth, links } = path;
    const isIntel = type === 'PHB' && from.kind === 'gpu' && passesIntel(links);
    links.forEach((link) => this.#put(link, factorOf(link, isIntel)));
    links.forEach((link) => {
      const share = answerShare(from, link);
      const back = share === 0 ? undefined : this.#reverse[link.index];
      if (back !== undefined) this.#put(back, share * factorOf(link, isIntel));
    });
    let isEven = true;
    for (let i = first; i < this.#end; i++) if (this.factors[i] !== 1) isEven = false;
    return { distance: distance(type), hops: links.length, bandwidth, first, end: this.#end, isEven };
  }

  #put(link: MachineLink, factor: number): void {
    this.links[this.#end] = link.index;
    this.factors[this.#end] = factor;
    this.#end += 1;
  }
}

function factorOf({ kind }: MachineLink, isIntel: boolean): number {
  return isIntel && kind === 'pci' ? INTEL_ROOT_COMPLEX_FACTOR : 1;
}

function passesIntel(links: readonly MachineLink[]): boolean {
  return links.some(({ to }) => to.kind === 'cpu' && to.architecture === 'x86_64' && to.vendor === 'intel');
}

/** What comes back over a link for what goes over it. */
function answerShare(from: MachineNode, { to, kind }: MachineLink): number {
  if (to.kind === 'gpu') return to.computeCapability < 80 && from.kind !== 'gpu' ? ANSWERS_OF_OLD_GPUS : 0;
  return to.kind === 'cpu' && to.architecture === 'ppc64' && kind === 'nvlink' ? 1 : 0;
}

export class Loads {
  /** MB/s, by link index. */
  readonly left: Int32Array;
  readonly #links: Int32Array;
  readonly #factors: Float64Array;

  constructor(bandwidths: Int32Array, { links, factors }: Uses) {
    this.left = new Int32Array(bandwidths);
    this.#links = links;
    this.#factors = factors;
  }

  /** False: not all links have so much left, and nothing has changed. `end`: to leave out answers. */
  take(use: Use, speed: number, end = use.end): boolean {
    const links = this.#links;
    const { left } = this;
    const { first, isEven } = use;
    const even = Math.round(speed);
    for (let i = first; i < end; i++) {
      const link = links[i] ?? 0;
      const rest = (left[link] ?? 0) - (isEven ? even : Math.round(speed * (this.#factors[i] ?? 1)));
      if (rest < 0) {
        this.give(use, speed, i);
        return false;
      }
      left[link] = rest;
    }
    return true;
  }

  give(use: Use, speed: number, end = use.end): void {
    const links = this.#links;
    const { left } = this;
    const { first, isEven } = use;
    const even = Math.round(speed);
    for (let i = first; i < end; i++) {
      const link = links[i] ?? 0;
      left[link] = (left[link] ?? 0) + (isEven ? even : Math.round(speed * (this.#factors[i] ?? 1)));
    }
  }
}
