/** Whether channels of two speeds fill links alike. */
import type { Candidates } from './candidates.ts';
import type { Attempt } from './channels.ts';
import type { Use, Uses } from './loads.ts';

/** Which flows take from a link: between GPUs, to and from NICs, and those that take more or less than they carry. */
const INSIDE = 1;
const BETWEEN = 2;
const UNEVEN = 4;

/** Of one machine. */
export class LinkUnits {
  readonly #gpus: number;
  readonly #ports: Float64Array;
  readonly #bandwidths: Int32Array;
  /** By link. */
  readonly #flows: Uint8Array;

  constructor({ gpus, ports, bandwidths, uses }: Candidates) {
    this.#gpus = gpus;
    this.#ports = ports;
    this.#bandwidths = bandwidths;
    this.#flows = new Uint8Array(bandwidths.length);
    mark(this.#flows, uses, uses.between, INSIDE);
    mark(this.#flows, uses, uses.toNet, BETWEEN);
    mark(this.#flows, uses, uses.fromNet, BETWEEN);
  }

  /**
   * How many flows each link and each port carries, as far as it matters to `bound` channels: where these numbers are the same, so are searches.
   * null: flows take different amounts of a link, so that numbers do not say it.
   */
  carried({ pattern, acrossHosts, inside, between }: Attempt, bound: number): Int32Array | null {
    // Of a balanced tree halves go out.
    const half = pattern === 'balancedTree' ? 0.5 : 1;
    const considered = acrossHosts ? INSIDE | BETWEEN | UNEVEN : INSIDE | UNEVEN;
    const carried = new Int32Array(this.#flows.length + this.#ports.length);
    for (let link = 0; link < this.#flows.length; link++) {
      const flows = (this.#flows[link] ?? 0) & considered;
      if (flows === 0) continue;
      if ((flows & UNEVEN) !== 0 || (flows === (INSIDE | BETWEEN) && inside !== between)) return null;
      const isBetween = (flows & BETWEEN) !== 0;
      const unit = isBetween ? between * half : inside;
      if (!Number.isInteger(unit)) return null;
      // A channel passes by every GPU.
      const wanted = (bound * ((flows & INSIDE) === 0 ? 3 : this.#gpus + 3)) / (isBetween ? half : 1);
      carried[link] = Math.min(wanted, Math.floor((this.#bandwidths[link] ?? 0) / unit));
    }
    if (!acrossHosts) return carried;
    for (let port = 0; port < this.#ports.length; port++) {
      carried[this.#flows.length + port] = Math.min(bound, Math.floor((this.#ports[port] ?? 0) / between));
    }
    return carried;
  }
}

function mark(flows: Uint8Array, { links, factors }: Uses, uses: readonly Use[], flow: number): void {
  for (let use = 0; use < uses.length; use++) {
    const { first, end } = uses[use] ?? { first: 0, end: 0 };
    for (let i = first; i < end; i++) {
      const link = links[i] ?? 0;
      flows[link] = (flows[link] ?? 0) | flow | (factors[i] === 1 ? 0 : UNEVEN);
    }
  }
}
