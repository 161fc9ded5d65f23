/**
 * Finds the channels of one pattern: many attempts, each with one bandwidth and one set of allowances, from the best that the machine could have to
 * what it can. After NCCL's published search (src/graph/search.cc); bounds.ts leaves out attempts that cannot be better than what is found.
 */
import type { GpuNode, Machine } from '../machine/node.ts';
import { distance, PATH_TYPES } from '../machine/path.ts';
import type { Candidates } from './candidates.ts';
import type { Attempt, SearchResult } from './channels.ts';
import type { FoundChannel, Graph, Pattern } from './graph.ts';
import { STEP_BUDGET } from './step-budget.ts';
import { fitsUpwards } from './phases.ts';
import { speedsFor } from './speeds.ts';
import type { SearchContext } from './context.ts';

interface SearchRequest {
  readonly pattern: Pattern;
  /** Channels go in and out by NICs. */
  readonly acrossHosts: boolean;
  readonly collnetOnly: boolean;
  readonly minChannels: number;
  readonly maxChannels: number;
  /** NCCL_CROSS_NIC: never, where it helps by any NIC, or where it helps in pairs. */
  readonly crossNic: 0 | 1 | 2;
}

const STEPS = 1 << 14;
const STEPS_OF_SAME_CHANNELS = 1 << 8;
/** Of all attempts together; then each has only a few. */
const STEPS_OF_ALL = { inside: 1 << 19, between: 1 << 15 };
const STEPS_WHEN_LATE = 1 << 9;

/** More orders of them than an attempt has steps. */
const GPUS_WITH_MANY_ORDERS = 8;

/** null: there are no such channels. */
export function search(context: SearchContext, request: SearchRequest): Graph | null {
  return new Search(context, request).run();
}

type Best = Graph & { readonly hops: number };

/** Best possible: as many channels as were asked for, or all that a GPU sends. Impossible: also with channels that differ. */
type Outcome = 'best possible' | 'gain' | 'no gain' | 'impossible';

class Search {
  readonly #machine: Machine;
  readonly #request: SearchRequest;
  readonly #context: SearchContext;
  readonly #pattern: Pattern;
  readonly #speeds: readonly number[];
  /** Allowed for paths between GPUs and NICs, the nearest first. */
  readonly #distancesBetween: readonly number[];
  readonly #tried = new Set<string>();
  #best: Best | null = null;
  #stepsLeft: number;

  constructor(context: SearchContext, request: SearchRequest) {
    this.#machine = context.routes.machine;
    this.#request = request;
    this.#context = context;
    this.#stepsLeft = request.acrossHosts ? STEPS_OF_ALL.between : STEPS_OF_ALL.inside;
    this.#pattern = this.#machine.gpus.length === 1 && request.pattern !== 'ring' ? 'tree' : request.pattern;
    this.#speeds = speedsFor(context.computeCapability, request.acrossHosts);
    this.#distancesBetween = request.acrossHosts ? context.distancesBetween : [distance('PIX')];
  }

  run(): Graph | null {
    this.#slowDown();
    if (this.#best === null) return null;
    this.#duplicate();
    this.#speedUp();
    return this.#best;
  }

  /** From the highest speed down, until twice as many channels could not make up for it. */
  #slowDown(): void {
    for (let index = this.#firstSpeed(); index < this.#speeds.length; index++) {
      const speed = this.#speeds[index] ?? 0;
      const best = this.#best;
      if (best !== null && speed / best.between <= 0.49) return;
      if (this.#tryAll(speed)) return;
    }
  }

  #firstSpeed(): number {
    const { gpus } = this.#machine;
    const { uses } = this.#context;
    const { acrossHosts, minChannels } = this.#request;
    let widest = 0;
    (acrossHosts ? uses.toNet : uses.between).forEach(({ bandwidth, hops }) => {
      if (hops > 0) widest = Math.max(widest, bandwidth);
    });
    if (!acrossHosts && gpus.length === 1) widest = Number.POSITIVE_INFINITY;
    const total = this.#totalBandwidth();
    const first = this.#speeds.findIndex((speed) => speed <= widest && speed * minChannels <= total);
    return first === -1 ? this.#speeds.length - 1 : first;
  }

  /** What one GPU sends at most; of trees not all do. */
  #totalBandwidth(): number {
    const { gpus } = this.#machine;
    const total = Math.max(...gpus.map(gpuBandwidth));
    return this.#pattern === 'ring' || gpus.length < 2 ? total : (total * gpus.length) / (gpus.length - 1);
  }

  /** All allowances at one speed. True: it cannot get better. */
  #tryAll(speed: number): boolean {
    const { acrossHosts, crossNic } = this.#request;
    const mayCross = acrossHosts && this.#machine.nets.length > 1 && this.#crossesNics() && crossNic === 2;
    for (const cross of mayCross ? ([0, 2] as const) : ([crossNic === 1 && this.#crossesNics() ? 1 : 0] as const)) {
      for (const between of this.#distancesBetween) {
        const result = this.#best;
        const worthwhile = result === null || between <= distance(result.typeBetween) || between <= distance('PXN');
        if (!worthwhile) break;
        for (const inside of this.#context.distancesInside) {
          const isFirst = inside === this.#context.distancesInside[0];
          if (acrossHosts && !isFirst && inside > between) break;
          if (this.#best !== null && !isFirst && inside > distance(this.#best.typeInside)) break;
          if (this.#tryOrders({ speed, inside, between, cross })) return true;
          if (this.#stepsLeft < 0 && this.#best !== null) return true;
        }
      }
    }
    return false;
  }

  #crossesNics(): boolean {
    return this.#pattern === 'ring' || this.#pattern === 'balancedTree' || this.#pattern === 'splitTree';
  }

  #tryOrders(limits: { speed: number; inside: number; between: number; cross: 0 | 1 | 2 }): boolean {
    const [cpu] = this.#machine.cpus;
    const isAmd = cpu?.architecture === 'x86_64' && cpu.vendor === 'amd';
    const mayDiffer = !(isAmd && limits.inside === distance('SYS'));
    const patterns: Pattern[] = this.#pattern === 'balancedTree' ? ['balancedTree', 'tree'] : [this.#pattern];
    for (const pattern of patterns) {
      for (const sameChannels of mayDiffer ? [true, false] : [true]) {
        const attempt: Attempt = {
          pattern,
          acrossHosts: this.#request.acrossHosts,
          inside: limits.speed,
          between: limits.speed,
          distanceInside: limits.inside,
          distanceBetween: limits.between,
          sameChannels,
          crossNic: limits.cross,
          bothDirections: false,
          maxChannels: this.#request.maxChannels,
        };
        const outcome = this.#try(attempt);
        if (outcome === 'best possible') return true;
        if (outcome === 'impossible') break; // as the first channel, so all others
      }
    }
    return false;
  }

  #try(attempt: Attempt): Outcome {
    if (this.#wasTried(attempt)) return 'no gain';
    const candidates = this.#candidatesFor(attempt.distanceBetween);
    const bound = this.#context.bounds.maxChannels(attempt, candidates.usedPorts);
    const best = this.#best;
    if (bound < this.#request.minChannels) return 'impossible';
    if (best !== null && bound * attempt.inside <= best.channels.length * best.inside) return 'impossible';
    if (this.#isFutile(attempt, candidates)) return 'no gain';
    const steps = attempt.sameChannels
      ? STEPS_OF_SAME_CHANNELS
      : Math.min(STEPS, Math.max(this.#stepsLeft, STEPS_WHEN_LATE));
    const result = this.#run(candidates, attempt, bound, steps);
    const { channels } = result;
    if (channels.length === 0 && !result.unfinished) return 'impossible';
    if (channels.length === 0 || channels.length < this.#request.minChannels) return 'no gain';
    if (best !== null && channels.length * attempt.inside <= best.channels.length * best.inside) return 'no gain';
    const { pattern, inside, between, sameChannels, crossNic } = attempt;
    const { nets } = this.#machine;
    this.#best = {
      pattern,
      channels,
      inside,
      between,
      typeInside: PATH_TYPES[attempt.distanceInside] ?? 'DIS',
      typeBetween: attempt.acrossHosts ? (PATH_TYPES[attempt.distanceBetween] ?? 'DIS') : 'PIX',
      sameChannels,
      crossNic,
      latencyBetween: Math.max(0, ...channels.map((channel) => nets[channel.nets?.[0] ?? -1]?.latency ?? 0)),
      hops: result.hops,
    };
    const isAll = channels.length === this.#request.maxChannels || channels.length * between >= this.#totalBandwidth();
    return isAll ? 'best possible' : 'gain';
  }

  /** What can be carried in both directions. Where only the path down fits, the search lays both at once; between hosts that is not tried. */
  #run(candidates: Candidates, attempt: Attempt, bound: number, steps: number): SearchResult {
    const { attempts } = this.#context;
    const down = attempts.run(candidates, attempt, bound, steps);
    this.#stepsLeft -= down.steps;
    if (fitsUpwards(candidates, attempt, down.channels)) return down;
    if (attempt.acrossHosts) return { ...down, channels: [], unfinished: true };
    const both = attempts.run(candidates, { ...attempt, bothDirections: true }, bound, steps);
    this.#stepsLeft -= both.steps;
    return { ...both, unfinished: true };
  }

  /**
   * What so many GPUs, each with a path to many others, would only show after all the steps that an attempt may take. They count as taken: where NICs or
   * paths are the bottleneck, there are many attempts at every speed, and later ones shall have few steps.
   */
  #isFutile(attempt: Attempt, candidates: Candidates): boolean {
    const { pattern, acrossHosts, inside, sameChannels, crossNic } = attempt;
    if (candidates.gpus < GPUS_WITH_MANY_ORDERS || candidates.hasSwitch || pattern === 'collnetDirect') return false;
    const best = this.#best;
    if (sameChannels) {
      const copies = this.#context.bounds.maxCopies(attempt);
      const isEnough =
        copies >= this.#request.minChannels && (best === null || copies * inside > best.channels.length * best.inside);
      if (!isEnough) this.#stepsLeft -= STEPS_OF_SAME_CHANNELS;
      return !isEnough;
    }
    const isLost = acrossHosts && pattern === 'ring' && crossNic === 0 && !candidates.mayRingsReturn;
    if (isLost) this.#stepsLeft -= STEP_BUDGET + 1;
    return isLost;
  }

  /** A plain tree comes in at a NIC's nearest GPUs and goes out there: farther paths and other NICs change nothing. */
  #wasTried({ pattern, inside, between, distanceInside, distanceBetween, sameChannels }: Attempt): boolean {
    if (pattern !== 'tree') return false;
    const farthest = Math.max(0, ...this.#context.nearDistances.filter((far) => far <= distanceBetween));
    const key = [inside, between, distanceInside, farthest, sameChannels].join();
    const isNew = !this.#tried.has(key);
    this.#tried.add(key);
    return !isNew;
  }

  #candidatesFor(distanceBetween: number): Candidates {
    return this.#context.candidates(distanceBetween, this.#request.collnetOnly);
  }

  /** Channels of half the speed, twice as many: a block moves no more than about 25 GB/s. */
  #duplicate(): void {
    const best = this.#best;
    if (best === null || best.inside < 25_000) return;
    if (this.#context.computeCapability > 80 && best.inside < 50_000 && best.channels.length > 4) return;
    const count = Math.min(best.channels.length * 2, this.#request.maxChannels);
    const times = Math.ceil(count / best.channels.length);
    const all: FoundChannel[] = [...best.channels, ...best.channels].slice(0, count);
    this.#best = { ...best, channels: all, inside: best.inside / times, between: best.between / times };
  }

  /** With the same channels, what is left: rings as a whole, trees inside the host up to twice what comes in. */
  #speedUp(): void {
    for (;;) {
      const best = this.#best;
      if (best === null) return;
      const { pattern, channels, inside, between, sameChannels, crossNic } = best;
      const isRing = pattern === 'ring';
      if (!isRing && inside >= between * 2) return;
      const faster = this.#speeds.findLast((speed) => speed > inside);
      if (faster === undefined) return;
      const attempt: Attempt = {
        pattern,
        acrossHosts: this.#request.acrossHosts,
        inside: faster,
        between: isRing ? faster : between,
        distanceInside: distance(best.typeInside),
        distanceBetween: distance(best.typeBetween),
        sameChannels,
        crossNic,
        bothDirections: false,
        maxChannels: channels.length,
      };
      const candidates = this.#candidatesFor(attempt.distanceBetween);
      if (this.#context.bounds.maxChannels(attempt, candidates.usedPorts) < channels.length) return;
      const result = this.#run(candidates, attempt, channels.length, STEPS);
      if (result.channels.length < channels.length) return;
      this.#best = { ...best, channels: result.channels, inside: faster, between: attempt.between, hops: result.hops };
    }
  }
}

function gpuBandwidth({ links }: GpuNode): number {
  const total = (kind: 'nvlink' | 'pci'): number =>
    links.reduce((sum, link) => (link.kind === kind ? sum + link.bandwidth : sum), 0);
  return Math.max(total('nvlink'), total('pci'));
}
