/**
 * Lays as many channels of one kind as possible over a machine: depth first, one channel after the other, each GPU by GPU, with the most
 * promising choice first. The work is bounded in steps, not in time, so that a result never depends on the clock.
 */
import type { Candidates } from './candidates.ts';
import type { FoundChannel, Pattern } from './graph.ts';
import { Loads, NO_USE } from './loads.ts';
import type { Use } from './loads.ts';
import { BestChannels } from './best-channels.ts';
import { REFERENCE_STEP_BUDGET, STEP_BUDGET, STEPS_OF_A_REFERENCE, STEPS_WITHOUT_REFERENCE } from './step-budget.ts';

/** What all channels of one attempt have in common. */
export interface Attempt {
  readonly pattern: Pattern;
  readonly acrossHosts: boolean;
  /** MB/s of a channel between GPUs, and to and from NICs. */
  readonly inside: number;
  readonly between: number;
  /** Farthest paths between GPUs, and to and from NICs (distance()). */
  readonly distanceInside: number;
  readonly distanceBetween: number;
  readonly sameChannels: boolean;
  readonly crossNic: 0 | 1 | 2;
  /** Of chains inside one host: the reverse path, from each GPU to the one before it, takes what it carries too (phases.ts). */
  readonly bothDirections: boolean;
  /** More than so many are not asked for. */
  readonly maxChannels: number;
}

export interface SearchResult {
  readonly channels: readonly FoundChannel[];
  /** Links of all paths together. */
  readonly hops: number;
  /** The steps were used up before everything had been tried. */
  readonly unfinished: boolean;
  /** That were used. */
  readonly steps: number;
}

/** What is tried first where nothing is known: all GPUs in order; later channels as the one before. */
type Forced = 'none' | 'ascending' | 'replay';

/** Above all steps: nothing is left to do. */
const ALL_DONE = 1 << 30;

export class ChannelSearch {
  readonly #candidates: Candidates;
  readonly #attempt: Attempt;
  readonly #bound: number;
  readonly #gpus: number;
  readonly #nets: number;
  readonly #pattern: Pattern;
  readonly #acrossHosts: boolean;
  /** After so many GPUs beside the first a channel goes out; -1: it does not. */
  readonly #stepOfReturn: number;
  readonly #loads: Loads;
  /** What the reverse paths leave of the links; null if the attempt does not consider them. */
  readonly #loadsUp: Loads | null;
  /** MB/s by port index. */
  readonly #ports: number[];
  /** [channel × gpus + step]: GPU. */
  readonly #orders: Int32Array;
  /** [channel × gpus + gpu] */
  readonly #used: Uint8Array;
  readonly #netIn: Int32Array;
  readonly #netOut: Int32Array;
  #channel = 0;
  #hops = 0;
  /** Steps left. */
  #steps: number;
  /** With so few it gives up. */
  #stopAt = 0;
  #stepBudget = STEP_BUDGET;
  readonly #best: BestChannels;

  /** `bound`: more channels than so many cannot be (bounds.ts). */
  constructor(candidates: Candidates, attempt: Attempt, bound: number, steps: number) {
    this.#candidates = candidates;
    this.#attempt = attempt;
    this.#bound = Math.min(bound, attempt.maxChannels);
    this.#gpus = candidates.gpus;
    this.#nets = candidates.nets;
    this.#pattern = attempt.pattern;
    this.#acrossHosts = attempt.acrossHosts;
    this.#stepOfReturn = attempt.acrossHosts ? stepOfReturn(attempt.pattern, candidates.gpus) : -1;
    this.#loads = new Loads(candidates.bandwidths, candidates.uses);
    this.#loadsUp = attempt.bothDirections ? new Loads(candidates.bandwidths, candidates.uses) : null;
    this.#ports = [...candidates.ports];
    this.#orders = new Int32Array(this.#bound * this.#gpus);
    this.#used = new Uint8Array(this.#bound * this.#gpus);
    this.#netIn = new Int32Array(this.#bound).fill(-1);
    this.#netOut = new Int32Array(this.#bound).fill(-1);
    this.#best = new BestChannels(this.#bound, this.#gpus);
    this.#steps = steps;
    // Inside one host there are few attempts: each has all its steps.
    if (!attempt.acrossHosts) this.#stepBudget = steps;
    this.#gainAt(steps);
  }

  run(): SearchResult {
    const given = this.#steps;
    if (this.#bound > 0) this.#nextChannel();
    const channels = this.#best.channels(this.#acrossHosts);
    const unfinished = this.#stopAt !== ALL_DONE && this.#steps <= 0;
    return { channels, hops: this.#best.hops, unfinished, steps: given - Math.max(0, this.#steps) };
  }

  #gainAt(steps: number): void {
    if (this.#stopAt !== ALL_DONE) this.#stopAt = Math.max(0, steps - this.#stepBudget - 1);
  }

  #nextChannel(): void {
    if (this.#acrossHosts) this.#fromNets();
    else this.#fromGpus();
  }

  #fromGpus(): void {
    if (this.#pattern === 'collnetDirect') {
      // Heads in another order take the same of every link.
      const next = this.#channel === 0 ? 0 : this.#replayed(0) + 1;
      for (let gpu = next; gpu < this.#gpus; gpu++) this.#start(gpu, 'none');
      return;
    }
    if (this.#channel === 0) this.#start(0, 'ascending');
    else this.#start(this.#replayed(0), 'replay');
    if (this.#attempt.sameChannels && this.#channel > 0) return;
    for (let gpu = 0; gpu < this.#gpus; gpu++) this.#start(gpu, 'none');
  }

  /** CollNet's direct form has a head of its own in each channel. */
  #isHead(gpu: number): boolean {
    for (let channel = 0; channel < this.#channel; channel++) {
      if (this.#orders[channel * this.#gpus] === gpu) return true;
    }
    return false;
  }

  #start(gpu: number, forced: Forced): void {
    this.#enter(gpu, 0, forced);
  }

  #fromNets(): void {
    const { pattern, between, crossNic, sameChannels } = this.#attempt;
    const { startNets, portOf } = this.#candidates;
    for (let i = 0; i < startNets.length && !this.#isOver(); i++) {
      const net = startNets[(this.#channel + i) % startNets.length] ?? 0;
      const port = portOf[net] ?? 0;
      if ((this.#ports[port] ?? 0) < between) continue;
      // The second of a pair goes in where the first goes out.
      const isSecond = pattern === 'ring' && crossNic === 2 && this.#channel % 2 === 1;
      if (isSecond && net !== this.#netOut[this.#channel - 1]) continue;
      this.#netIn[this.#channel] = net;
      this.#ports[port] = (this.#ports[port] ?? 0) - between;
      let wasHead = false;
      if (pattern === 'collnetDirect') wasHead = this.#startHead(net);
      else if (this.#channel > 0 && sameChannels) this.#startAt(net, this.#replayed(0), 'replay');
      else this.#startNear(net);
      this.#ports[port] = (this.#ports[port] ?? 0) + between;
      if (wasHead) return;
    }
  }

  #startNear(net: number): void {
    if (this.#channel === 0 && !this.#candidates.hasSwitch) {
      if (this.#steps <= STEPS_WITHOUT_REFERENCE) this.#tryReference(net);
      this.#gainAt(this.#steps);
    }
    const gpus = this.#candidates.firstGpus[net] ?? [];
    for (let i = 0; i < gpus.length; i++) this.#startAt(net, gpus[i] ?? 0, 'none');
  }

  /** With steps of its own. */
  #tryReference(net: number): void {
    const steps = this.#steps;
    const stepBudget = this.#stepBudget;
    this.#stepBudget = REFERENCE_STEP_BUDGET;
    this.#steps = Math.min(steps, STEPS_OF_A_REFERENCE);
    this.#gainAt(this.#steps);
    this.#startAt(net, 0, 'ascending');
    this.#steps = steps;
    this.#stepBudget = stepBudget;
  }

  /** Of CollNet's direct form: the NIC's own GPU, once. */
  #startHead(net: number): boolean {
    const gpu = this.#candidates.localGpus[net] ?? -1;
    if (gpu === -1 || this.#isHead(gpu)) return false;
    this.#startAt(net, gpu, 'none');
    return true;
  }

  #startAt(net: number, gpu: number, forced: Forced): void {
    const use = this.#candidates.uses.fromNet[net * this.#gpus + gpu];
    if (use === undefined) return;
    const isSymmetric = this.#pattern !== 'ring' && this.#pattern !== 'collnetDirect';
    const back = this.#candidates.uses.toNet[gpu * this.#nets + net];
    if (isSymmetric && back !== undefined && back.distance > this.#attempt.distanceBetween) return;
    if (!this.#takeBetween(use)) return;
    this.#enter(gpu, 0, forced);
    this.#giveBetween(use);
  }

  #enter(gpu: number, step: number, forced: Forced): void {
    const row = this.#channel * this.#gpus;
    this.#used[row + gpu] = 1;
    this.#orders[row + step] = gpu;
    if (this.#steps > this.#stopAt) {
      this.#steps -= 1;
      if (step === this.#stepOfReturn) this.#returnToNet(gpu, step, forced);
      else this.#goOn(gpu, step, forced);
    }
    this.#used[row + gpu] = 0;
  }

  #returnToNet(gpu: number, step: number, forced: Forced): void {
    const { pattern, crossNic } = this.#attempt;
    const start = this.#netIn[this.#channel] ?? 0;
    const { portOf, uses } = this.#candidates;
    const nets = this.#candidates.netsOf(gpu);
    for (let i = 0; i < nets.length; i++) {
      if (this.#isOver()) return;
      const net = nets[i] ?? 0;
      if (pattern === 'tree' && net !== start) continue;
      if (pattern === 'ring' && crossNic === 2) {
        if (this.#channel % 2 === 1 && net !== this.#netIn[this.#channel - 1]) continue;
      } else if (crossNic === 0 && portOf[net] !== portOf[start]) continue;
      const use = uses.toNet[gpu * this.#nets + net];
      const back = uses.fromNet[net * this.#gpus + gpu];
      if (use === undefined || back === undefined) continue;
      if (pattern !== 'ring' && pattern !== 'collnetDirect' && back.distance > this.#attempt.distanceBetween) continue;
      const share = pattern === 'balancedTree' && this.#gpus > 1 ? 0.5 : 1;
      if (!this.#takeBetween(use, share)) continue;
      this.#netOut[this.#channel] = net;
      if (share === 1) this.#goOn(gpu, step, forced);
      else this.#toSecond(gpu, net, forced);
      this.#giveBetween(use, share);
    }
  }

  /** Balanced trees: the second GPU sends the other half by the same NIC. */
  #toSecond(gpu: number, net: number, forced: Forced): void {
    if (forced !== 'none') {
      this.#trySecond(gpu, this.#forcedAfter(0, forced), net, forced);
      return;
    }
    const at = this.#channel * this.#gpus;
    const start = this.#netIn[this.#channel] ?? 0;
    const nexts = this.#candidates.nextGpus.nextTowards(gpu, start, true, this.#pattern, this.#used, at);
    for (let i = 0; i < nexts.length; i++) this.#trySecond(gpu, nexts[i] ?? 0, net, forced);
  }

  #trySecond(gpu: number, next: number, net: number, forced: Forced): void {
    const slot = this.#channel * this.#gpus + next;
    if (this.#used[slot] !== 0) return;
    const { between, toNet, fromNet } = this.#candidates.uses;
    const use = between[gpu * this.#gpus + next];
    const half = toNet[next * this.#nets + net];
    const back = fromNet[net * this.#gpus + next];
    if (use === undefined || half === undefined || back === undefined) return;
    if (back.distance > this.#attempt.distanceBetween || !this.#takeInside(use)) return;
    if (this.#takeBetween(half, 0.5)) {
      this.#used[slot] = 1;
      this.#orders[this.#channel * this.#gpus + 1] = next;
      this.#steps -= 1;
      if (!this.#isOver()) this.#goOn(next, 1, forced);
      this.#used[slot] = 0;
      this.#giveBetween(half, 0.5);
    }
    this.#giveInside(use);
  }

  #goOn(gpu: number, step: number, forced: Forced): void {
    if (this.#pattern === 'collnetDirect') this.#reachAll(gpu);
    else if (step === this.#gpus - 1) this.#finish(gpu);
    else if (forced === 'none') this.#toNext(gpu, step);
    else this.#toForced(gpu, step, forced);
  }

  /** Most of a search's time goes by here: in one piece, and without what is rare, it is compiled once, and soon. */
  #toNext(gpu: number, step: number): void {
    const nexts = this.#nextGpus(gpu, step);
    const gpus = this.#gpus;
    const row = this.#channel * gpus;
    const used = this.#used;
    const loads = this.#loads;
    const { between } = this.#candidates.uses;
    const { inside, distanceInside } = this.#attempt;
    for (let i = 0; i < nexts.length; i++) {
      if (this.#steps <= this.#stopAt) return;
      const next = nexts[i] ?? 0;
      if (used[row + next] !== 0) continue;
      const use = between[gpu * gpus + next];
      if (use === undefined || use.distance > distanceInside || !loads.take(use, inside)) continue;
      if (!this.#takeUp(gpu, next)) {
        loads.give(use, inside);
        continue;
      }
      used[row + next] = 1;
      this.#orders[row + step + 1] = next;
      this.#hops += use.hops;
      this.#steps -= 1;
      if (step + 1 === this.#stepOfReturn) this.#returnToNet(next, step + 1, 'none');
      else if (step + 2 < gpus) this.#toNext(next, step + 1);
      else this.#finish(next);
      this.#hops -= use.hops;
      loads.give(use, inside);
      this.#giveUp(gpu, next);
      used[row + next] = 0;
    }
  }

  #toForced(gpu: number, step: number, forced: Forced): void {
    const next = this.#forcedAfter(step, forced);
    if (this.#used[this.#channel * this.#gpus + next] !== 0) return;
    const use = this.#candidates.uses.between[gpu * this.#gpus + next];
    if (use === undefined || !this.#takeInside(use)) return;
    if (this.#takeUp(gpu, next)) {
      this.#enter(next, step + 1, forced);
      this.#giveUp(gpu, next);
    }
    this.#giveInside(use);
  }

  /** Takes the reverse path, for data alone, without answers. False if it has too little bandwidth left; nothing has changed then. */
  #takeUp(gpu: number, next: number): boolean {
    if (this.#loadsUp === null) return true;
    const back = this.#candidates.uses.between[next * this.#gpus + gpu] ?? NO_USE;
    return this.#loadsUp.take(back, this.#attempt.inside, back.first + back.hops);
  }

  #giveUp(gpu: number, next: number): void {
    if (this.#loadsUp === null) return;
    const back = this.#candidates.uses.between[next * this.#gpus + gpu] ?? NO_USE;
    this.#loadsUp.give(back, this.#attempt.inside, back.first + back.hops);
  }

  #finish(gpu: number): void {
    if (this.#pattern === 'ring' && !this.#acrossHosts) this.#closeRing(gpu);
    else this.#complete();
  }

  #closeRing(gpu: number): void {
    const first = this.#orders[this.#channel * this.#gpus] ?? 0;
    if (first === gpu) {
      this.#complete();
      return;
    }
    const use = this.#candidates.uses.between[gpu * this.#gpus + first];
    if (use === undefined || !this.#takeInside(use)) return;
    this.#complete();
    this.#giveInside(use);
  }

  /** CollNet's direct form: the head exchanges a share with each other GPU, in both directions. */
  #reachAll(head: number): void {
    const gpus = this.#gpus;
    let reached = 0;
    for (; reached < gpus; reached++) {
      if (reached === head) continue;
      const step = reached < head ? reached + 1 : reached;
      this.#orders[this.#channel * gpus + step] = reached;
      if (!this.#exchange(head, reached)) break;
    }
    if (reached === gpus) this.#complete();
    for (let other = 0; other < reached; other++) if (other !== head) this.#undoExchange(head, other);
  }

  /** False: there is not as much left, and nothing has changed. */
  #exchange(head: number, other: number): boolean {
    const there = this.#candidates.uses.between[head * this.#gpus + other] ?? NO_USE;
    const back = this.#candidates.uses.between[other * this.#gpus + head] ?? NO_USE;
    const farthest = this.#attempt.distanceInside;
    if (there.distance > farthest || back.distance > farthest) return false;
    const speed = this.#shareOfHead();
    if (!this.#loads.take(there, speed)) return false;
    if (this.#loads.take(back, speed)) return true;
    this.#loads.give(there, speed);
    return false;
  }

  #undoExchange(head: number, other: number): void {
    const speed = this.#shareOfHead();
    this.#loads.give(this.#candidates.uses.between[head * this.#gpus + other] ?? NO_USE, speed);
    this.#loads.give(this.#candidates.uses.between[other * this.#gpus + head] ?? NO_USE, speed);
  }

  #shareOfHead(): number {
    return this.#attempt.inside * (1 / Math.max(1, this.#gpus - 1));
  }

  #complete(): void {
    this.#channel += 1;
    const count = this.#channel;
    const best = this.#best;
    if (count > best.count) this.#gainAt(this.#steps);
    if (count > best.count || (count === best.count && this.#hops < best.hops)) {
      best.keep(count, this.#hops, this.#orders, this.#netIn, this.#netOut);
      if (count === this.#bound) this.#stopAt = ALL_DONE;
    }
    if (count < this.#bound && !this.#isOver()) this.#nextChannel();
    this.#channel -= 1;
  }

  /** Some may be used already. */
  #nextGpus(gpu: number, step: number): readonly number[] {
    const { nextGpus } = this.#candidates;
    if (this.#stepOfReturn <= step) return nextGpus.next(gpu, this.#pattern);
    const net = this.#netIn[this.#channel] ?? 0;
    const isLast = this.#stepOfReturn === step + 1;
    return nextGpus.nextTowards(gpu, net, isLast, this.#pattern, this.#used, this.#channel * this.#gpus);
  }

  #forcedAfter(step: number, forced: Forced): number {
    return forced === 'ascending' ? step + 1 : this.#replayed(step + 1);
  }

  #replayed(step: number): number {
    return this.#orders[(this.#channel - 1) * this.#gpus + step] ?? 0;
  }

  #takeInside(use: Use): boolean {
    if (use.distance > this.#attempt.distanceInside || !this.#loads.take(use, this.#attempt.inside)) return false;
    this.#hops += use.hops;
    return true;
  }

  #giveInside(use: Use): void {
    this.#loads.give(use, this.#attempt.inside);
    this.#hops -= use.hops;
  }

  #takeBetween(use: Use, share = 1): boolean {
    if (use.distance > this.#attempt.distanceBetween) return false;
    if (!this.#loads.take(use, this.#attempt.between * share)) return false;
    this.#hops += use.hops;
    return true;
  }

  #giveBetween(use: Use, share = 1): void {
    this.#loads.give(use, this.#attempt.between * share);
    this.#hops -= use.hops;
  }

  #isOver(): boolean {
    return this.#steps <= this.#stopAt;
  }
}

function stepOfReturn(pattern: Pattern, gpus: number): number {
  if (pattern === 'ring') return gpus - 1;
  return pattern === 'splitTree' && gpus > 1 ? 1 : 0;
}
