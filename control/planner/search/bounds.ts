/** How many channels there can be at most, by what leaves each GPU and each NIC: what no search can beat need not be searched. */
import type { Machine } from '../machine/node.ts';
import { Chains } from './chains.ts';
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
  readonly #chains: Chains;
  /** By distance inside: the first links of each GPU's paths to the others. */
  readonly #inside = new Map<number, readonly (readonly Gate[])[]>();
  /** By distance between: each path between a GPU and a NIC has one of these links at a GPU. */
  readonly #entering = new Map<number, readonly Gate[]>();
  readonly #leaving = new Map<number, readonly Gate[]>();

  constructor(machine: Machine, uses: Uses) {
    this.#machine = machine;
    this.#uses = uses;
    this.#chains = new Chains(machine.gpus.length, uses);
  }

  /** `ports`: MB/s of the NICs' ports that channels may use. */
  maxChannels(attempt: Attempt, ports: readonly number[]): number {
    const { pattern, acrossHosts, inside, between, distanceInside, distanceBetween, maxChannels } = attempt;
    const gpus = this.#machine.gpus.length;
    let bound = maxChannels;
    if (acrossHosts) {
      const share = pattern === 'balancedTree' && gpus > 1 ? 0.5 : 1;
      const { fromNet, toNet } = this.#uses;
      const entering = remembered(this.#entering, distanceBetween, () => this.#gatesAtGpus(fromNet, distanceBetween));
      const leaving = remembered(this.#leaving, distanceBetween, () => this.#gatesAtGpus(toNet, distanceBetween));
      let ofPorts = 0;
      ports.forEach((port) => (ofPorts += Math.floor(port / between)));
      bound = Math.min(
        bound,
        ofPorts,
        through(entering, between),
        Math.floor(through(leaving, between * share) * share),
      );
    }
    if (pattern === 'collnetDirect') return Math.min(bound, gpus);
    if (gpus < 2) return bound;
    if (!this.#chains.mayBe(inside, distanceInside)) return 0;
    const gates = remembered(this.#inside, distanceInside, () => this.#firstLinks(distanceInside));
    let narrowest = bound;
    let sum = 0;
    gates.forEach((links) => {
      const carried = through(links, inside);
      narrowest = Math.min(narrowest, carried);
      sum += carried;
    });
    if (pattern === 'ring' && !acrossHosts) return narrowest;
    // All GPUs but one forward inside the host.
    return Math.min(bound, Math.floor(sum / (gpus - 1)));
  }

  /** Where all channels go through the GPUs in the same order: how many channels the widest path carries. */
  maxCopies({ inside, distanceInside }: Attempt): number {
    let widest = 0;
    this.#uses.between.forEach(({ distance, hops, bandwidth }) => {
      if (hops > 0 && distance <= distanceInside) widest = Math.max(widest, bandwidth);
    });
    return Math.floor(widest / inside);
  }

  #firstLinks(farthest: number): Gate[][] {
    const { links, between } = this.#uses;
    const gpus = this.#machine.gpus.length;
    return this.#machine.gpus.map((_, gpu) => {
      const gates = new Gates(this.#machine, this.#uses);
      for (const use of between.slice(gpu * gpus, (gpu + 1) * gpus)) {
        if (use.distance <= farthest && use.hops > 0) gates.add(use.first, links[use.first] ?? 0);
      }
      return gates.all();
    });
  }

  /** The links of allowed paths, without answers, that lie at a GPU. */
  #gatesAtGpus(uses: readonly Use[], farthest: number): Gate[] {
    const { links } = this.#machine;
    const isAtGpu = links.map(({ kind, from, to }) => kind !== 'nvlink' && (from.kind === 'gpu' || to.kind === 'gpu'));
    const gates = new Gates(this.#machine, this.#uses);
    uses.forEach((use) => {
      if (use.distance > farthest) return;
      for (let position = use.first; position < use.first + use.hops; position++) {
        const link = this.#uses.links[position] ?? 0;
        if (isAtGpu[link] === true) gates.add(position, link);
      }
    });
    return gates.all();
  }
}

class Gates {
  readonly #machine: Machine;
  readonly #uses: Uses;
  readonly #factors = new Map<number, number>();

  constructor(machine: Machine, uses: Uses) {
    this.#machine = machine;
    this.#uses = uses;
  }

  /** `position`: in the table of uses. */
  add(position: number, link: number): void {
    const factor = this.#uses.factors[position] ?? 1;
    const known = this.#factors.get(link);
    if (known === undefined || factor < known) this.#factors.set(link, factor);
  }

  all(): Gate[] {
    return Array.from(this.#factors, ([link, factor]) => ({
      bandwidth: this.#machine.links[link]?.bandwidth ?? 0,
      factor,
    }));
  }
}

function through(gates: readonly Gate[], speed: number): number {
  let sum = 0;
  for (let i = 0; i < gates.length; i++) {
    const gate = gates[i];
    if (gate !== undefined) sum += Math.floor(gate.bandwidth / Math.round(speed * gate.factor));
  }
  return sum;
}

function remembered<Value>(known: Map<number, Value>, key: number, make: () => Value): Value {
  const value = known.get(key) ?? make();
  known.set(key, value);
  return value;
}
