/** Whether channels of two speeds fill links alike. */
import type { Candidates } from './candidates.ts';
import type { Attempt } from './channels.ts';
import { NO_USE } from './loads.ts';
import type { Use, Uses } from './loads.ts';

/** Which flows take from a link: between GPUs, to and from NICs, and those that take more or less than they carry. */
const INSIDE = 1;
const BETWEEN = 2;
const UNEVEN = 4;

/** Links that are as wide, and that the same flows take from: machines have many links, but few kinds. */
interface LinkClass {
  readonly bandwidth: number;
  readonly flows: number;
}

/** Of one machine. */
export class LinkUnits {
  readonly #gpus: number;
  readonly #classes: readonly LinkClass[];
  /** MB/s: the ports that there are, each once. */
  readonly #ports: readonly number[];

  constructor({ gpus, ports, bandwidths, uses }: Candidates) {
    this.#gpus = gpus;
    this.#ports = [...new Set(ports)];
    const flows = new Uint8Array(bandwidths.length);
    mark(flows, uses, uses.between, INSIDE);
    mark(flows, uses, uses.toNet, BETWEEN);
    mark(flows, uses, uses.fromNet, BETWEEN);
    const classes = new Map<number, LinkClass>();
    for (let link = 0; link < flows.length; link++) {
      const linkClass = { bandwidth: bandwidths[link] ?? 0, flows: flows[link] ?? 0 };
      if (linkClass.flows !== 0) classes.set(linkClass.bandwidth * 2 * UNEVEN + linkClass.flows, linkClass);
    }
    this.#classes = [...classes.values()];
  }

  /**
   * Number of flows that each kind of link and each port carries, as far as it matters to `bound` channels. Equal numbers imply equal searches.
   * Null if flows take different amounts of a link, so that numbers do not determine the search.
   */
  carried({ pattern, acrossHosts, inside, between }: Attempt, bound: number): readonly number[] | null {
    // Of a balanced tree halves go out.
    const half = pattern === 'balancedTree' ? 0.5 : 1;
    const considered = acrossHosts ? INSIDE | BETWEEN | UNEVEN : INSIDE | UNEVEN;
    const carried: number[] = [];
    for (const linkClass of this.#classes) {
      const flows = linkClass.flows & considered;
      if ((flows & (INSIDE | BETWEEN)) === 0) continue;
      if ((flows & UNEVEN) !== 0 || (flows === (INSIDE | BETWEEN) && inside !== between)) return null;
      const isBetween = (flows & BETWEEN) !== 0;
      const unit = isBetween ? between * half : inside;
      if (!Number.isInteger(unit)) return null;
      // A channel passes by every GPU.
      const wanted = (bound * ((flows & INSIDE) === 0 ? 3 : this.#gpus + 3)) / (isBetween ? half : 1);
      carried.push(Math.min(wanted, Math.floor(linkClass.bandwidth / unit)));
    }
    if (acrossHosts) this.#ports.forEach((port) => carried.push(Math.min(bound, Math.floor(port / between))));
    return carried;
  }
}

function mark(flows: Uint8Array, { links }: Uses, uses: readonly Use[], flow: number): void {
  for (let i = 0; i < uses.length; i++) {
    const { first, end, isEven } = uses[i] ?? NO_USE;
    const marked = isEven ? flow : flow | UNEVEN;
    for (let position = first; position < end; position++) {
      const link = links[position] ?? 0;
      flows[link] = (flows[link] ?? 0) | marked;
    }
  }
}
