/** Whether channels of two speeds fill links alike. */
import type { Candidates } from './candidates.ts';
import type { Attempt } from './channels.ts';
import type { Use, Uses } from './loads.ts';

/** What flows take of a link for each MB/s, between GPUs and to and from NICs. */
interface Factors {
  readonly link: number;
  readonly bandwidth: number;
  readonly inside: number[];
  readonly between: number[];
}

/** Of one machine. */
export class LinkUnits {
  readonly #gpus: number;
  readonly #ports: Float64Array;
  readonly #links: readonly Factors[];

  constructor({ gpus, ports, bandwidths, uses }: Candidates) {
    this.#gpus = gpus;
    this.#ports = ports;
    const all: Factors[] = [];
    bandwidths.forEach((bandwidth, link) => all.push({ link, bandwidth, inside: [], between: [] }));
    for (const use of uses.between) addFactors(all, uses, use, 'inside');
    for (const use of uses.toNet) addFactors(all, uses, use, 'between');
    for (const use of uses.fromNet) addFactors(all, uses, use, 'between');
    this.#links = all.filter(({ inside, between }) => inside.length + between.length > 0);
  }

  /** `bound`: channels at most. */
  areAlike(one: Attempt, other: Attempt, bound: number): boolean {
    if (one.inside === other.inside && one.between === other.between) return true;
    for (const factors of this.#links) if (!this.#isAlike(factors, one, other, bound)) return false;
    if (!one.acrossHosts) return true;
    for (const port of this.#ports) {
      const first = Math.min(bound, Math.floor(port / one.between));
      if (first !== Math.min(bound, Math.floor(port / other.between))) return false;
    }
    return true;
  }

  /** Both take multiples of a unit, the same ones, and the link carries as many units, or more than all channels take. */
  #isAlike({ bandwidth, inside, between }: Factors, one: Attempt, other: Attempt, bound: number): boolean {
    const first = loadsOf(inside, between, one);
    const second = loadsOf(inside, between, other);
    if (first.length === 0) return true;
    const unit = Math.min(...first);
    const otherUnit = Math.min(...second);
    let most = 0;
    for (let i = 0; i < first.length; i++) {
      const times = (first[i] ?? 0) / unit;
      if (!Number.isInteger(times) || times !== (second[i] ?? 0) / otherUnit) return false;
      most = Math.max(most, times);
    }
    // A channel passes by every GPU, and each way takes from a link once, and once for answers.
    const ways = (inside.length > 0 ? this.#gpus : 0) + (between.length > 0 ? 3 : 0);
    const demand = bound * most * ways * (first.length > 1 ? 2 : 1);
    const units = Math.min(demand, Math.floor(bandwidth / unit));
    return units === Math.min(demand, Math.floor(bandwidth / otherUnit));
  }
}

function addFactors(all: readonly Factors[], uses: Uses, use: Use, where: 'inside' | 'between'): void {
  for (let i = use.first; i < use.end; i++) {
    const known = all[uses.links[i] ?? -1]?.[where];
    const factor = uses.factors[i] ?? 1;
    if (known !== undefined && !known.includes(factor)) known.push(factor);
  }
}

/** As the search rounds them. */
function loadsOf(
  inside: readonly number[],
  between: readonly number[],
  { pattern, acrossHosts, inside: speedInside, between: speedBetween }: Attempt,
): number[] {
  const loads = inside.map((factor) => Math.round(speedInside * factor));
  if (!acrossHosts) return loads;
  for (const factor of between) {
    loads.push(Math.round(speedBetween * factor));
    if (pattern === 'balancedTree') loads.push(Math.round(speedBetween * 0.5 * factor));
  }
  return loads;
}
