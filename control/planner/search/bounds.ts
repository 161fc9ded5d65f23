/** How many channels there can be at most, by what leaves each GPU and each NIC: what no search can beat need not be searched. */
import type { Machine } from '../machine/node.ts';
import type { Attempt } from './channels.ts';
import type { Use, Uses } from './loads.ts';

/** A link, and the least that a flow over it takes for each MB/s. */
interface Gate {
  readonly bandwidth: number;
  readonly factor: number;
}

/** Of one machine; what the allowed distances leave open is worked out once for each. */
export class Bounds {
  readonly #machine: Machine;
  readonly #uses: Uses;
  /** By distance inside: the first links of each GPU's paths to the others. */
  readonly #inside = new Map<number, readonly (readonly Gate[])[]>();
  /** By distance between: each way between a GPU and a NIC has one of these links at a GPU. */
  readonly #entering = new Map<number, readonly Gate[]>();
  readonly #leaving = new Map<number, readonly Gate[]>();

  constructor(machine: Machine, uses: Uses) {
    this.#machine = machine;
    this.#uses = uses;
  }

  /** `ports`: MB/s of the NICs' ports that channels may use. */
  mostChannels(attempt: Attempt, ports: readonly number[]): number {
    const { pattern, acrossHosts, inside, between, distanceInside, distanceBetween, most } = attempt;
    const gpus = this.#machine.gpus.length;
    let bound = most;
    if (acrossHosts) {
      const share = pattern === 'balancedTree' && gpus > 1 ? 0.5 : 1;
      const { fromNet, toNet } = this.#uses;
      const entering = remembered(this.#entering, distanceBetween, () => this.#gatesAtGpus(fromNet, distanceBetween));
      const leaving = remembered(this.#leaving, distanceBetween, () => this.#gatesAtGpus(toNet, distanceBetween));
      bound = Math.min(
        bound,
        ports.reduce((sum, port) => sum + Math.floor(port / between), 0),
        through(entering, between),
        Math.floor(through(leaving, between * share) * share),
      );
    }
    if (pattern === 'collnetDirect') return Math.min(bound, gpus);
    if (gpus < 2) return bound;
    const gates = remembered(this.#inside, distanceInside, () => this.#firstLinks(distanceInside));
    const carried = gates.map((links) => through(links, inside));
    if (pattern === 'ring' && !acrossHosts) return Math.min(bound, ...carried);
    // All GPUs but one hand on inside the host.
    return Math.min(bound, Math.floor(carried.reduce((sum, channels) => sum + channels, 0) / (gpus - 1)));
  }

  #firstLinks(farthest: number): Gate[][] {
    return this.#uses.between.map((uses) => this.#gates(uses, farthest, (_, place) => place === 0));
  }

  #gatesAtGpus(uses: readonly (readonly Use[])[], farthest: number): Gate[] {
    const { links } = this.#machine;
    return this.#gates(uses.flat(), farthest, (index) => {
      const link = links[index];
      return link !== undefined && link.kind !== 'nvlink' && (link.from.kind === 'gpu' || link.to.kind === 'gpu');
    });
  }

  /** The links of allowed paths, without answers, that are asked for. */
  #gates(uses: readonly Use[], farthest: number, isWanted: (link: number, place: number) => boolean): Gate[] {
    const factors = new Map<number, number>();
    for (const use of uses) {
      if (use.distance > farthest) continue;
      for (let place = 0; place < use.hops; place++) {
        const link = use.links[place] ?? 0;
        const factor = use.factors[place] ?? 1;
        if (isWanted(link, place)) factors.set(link, Math.min(factor, factors.get(link) ?? factor));
      }
    }
    return Array.from(factors, ([link, factor]) => ({ bandwidth: this.#machine.links[link]?.bandwidth ?? 0, factor }));
  }
}

function through(gates: readonly Gate[], speed: number): number {
  return gates.reduce((sum, { bandwidth, factor }) => sum + Math.floor(bandwidth / Math.round(speed * factor)), 0);
}

function remembered<Value>(known: Map<number, Value>, key: number, make: () => Value): Value {
  const value = known.get(key) ?? make();
  known.set(key, value);
  return value;
}
