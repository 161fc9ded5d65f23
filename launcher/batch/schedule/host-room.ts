/** How much of one host is free, in numbers: now, or at a later time. Which slots these are is not decided here. */
import type { HostCapacity, Share } from '../model/capacity.ts';
import type { Demand } from '../model/spec.ts';

/** What a task uses of one host. */
interface Use {
  readonly ranks: number;
  readonly slots: number;
  readonly cpus: number;
  readonly memoryBytes: number;
  readonly exclusive: boolean;
}

export function useOfShare({ ranks, slots, cpus, memoryBytes, exclusive }: Share): Use {
  return { ranks, slots: slots.length, cpus, memoryBytes, exclusive };
}

/** Use of so many of a demand's ranks on one host. */
export function useOfRanks(demand: Demand, ranks: number): Use {
  const { takesSlots, cpusPerRank, memoryBytes, exclusive } = demand;
  return { ranks, slots: takesSlots ? ranks : 0, cpus: ranks * cpusPerRank, memoryBytes, exclusive };
}

/** Numbers may fall below 0 where more is reserved than is free; no rank fits then. */
export class HostRoom {
  /** Whether no task may start here. */
  isHeldOut = false;
  #slots: number;
  /** Infinity where they are not counted, as with memory. */
  #cpus: number;
  #memoryBytes: number;
  /** Ranks for which neither slots nor processors are counted: without a bound all of a batch would start at once. */
  #uncountedRanks: number;
  #tasks = 0;
  #exclusiveTasks = 0;

  constructor({ slots, cpus, memoryBytes }: HostCapacity) {
    this.#slots = slots.length;
    this.#cpus = cpus ?? Infinity;
    this.#memoryBytes = memoryBytes ?? Infinity;
    this.#uncountedRanks = Math.max(1, slots.length, cpus ?? 0);
  }

  copy(): HostRoom {
    const copy = new HostRoom({ name: '', slots: [], cpus: null, memoryBytes: null });
    copy.isHeldOut = this.isHeldOut;
    copy.#slots = this.#slots;
    copy.#cpus = this.#cpus;
    copy.#memoryBytes = this.#memoryBytes;
    copy.#uncountedRanks = this.#uncountedRanks;
    copy.#tasks = this.#tasks;
    copy.#exclusiveTasks = this.#exclusiveTasks;
    return copy;
  }

  get slots(): number {
    return this.#slots;
  }

  /** Infinity if not counted. */
  get cpus(): number {
    return this.#cpus;
  }

  /** Number of ranks of `demand` for which there is room, at most all of them. */
  ranksFor(demand: Demand): number {
    if (!this.isOpenTo(demand)) return 0;
    const room = Math.min(this.#bySlots(demand), this.#byProcessors(demand), this.#byMemory(demand));
    return Math.max(0, Math.min(demand.ranks, room));
  }

  /** The same as if nothing but one resource counted. */
  ranksBy(resource: 'slots' | 'processors' | 'memory', demand: Demand): number {
    if (!this.isOpenTo({ exclusive: false })) return 0;
    if (resource === 'slots') return Math.max(0, Math.min(demand.ranks, this.#bySlots(demand)));
    const room = resource === 'memory' ? this.#byMemory(demand) : this.#byProcessors(demand);
    return Math.max(0, Math.min(demand.ranks, room));
  }

  /** Whether a task may start here, if there is room. */
  isOpenTo({ exclusive }: Pick<Demand, 'exclusive'>): boolean {
    return !this.isHeldOut && this.#exclusiveTasks === 0 && !(exclusive && this.#tasks > 0);
  }

  /** Whether all of `use` is free. Hosts that are held out keep the tasks that they have. */
  hasRoomFor(use: Use): boolean {
    if (this.#exclusiveTasks > 0 || (use.exclusive && this.#tasks > 0)) return false;
    if (use.slots === 0 && this.#isUncounted(use.cpus) && use.ranks > this.#uncountedRanks) return false;
    return use.slots <= this.#slots && use.cpus <= this.#cpus && use.memoryBytes <= this.#memoryBytes;
  }

  take(use: Use): void {
    this.#change(use, -1);
  }

  giveBack(use: Use): void {
    this.#change(use, 1);
  }

  #change({ ranks, slots, cpus, memoryBytes, exclusive }: Use, sign: 1 | -1): void {
    if (slots === 0 && this.#isUncounted(cpus)) this.#uncountedRanks += sign * ranks;
    this.#slots += sign * slots;
    this.#cpus += sign * cpus;
    this.#memoryBytes += sign * memoryBytes;
    this.#tasks -= sign;
    if (exclusive) this.#exclusiveTasks -= sign;
  }

  #bySlots({ takesSlots, cpusPerRank }: Demand): number {
    if (takesSlots) return this.#slots;
    return this.#isUncounted(cpusPerRank) ? this.#uncountedRanks : Infinity;
  }

  #byProcessors({ cpusPerRank }: Demand): number {
    return cpusPerRank === 0 ? Infinity : Math.floor(this.#cpus / cpusPerRank);
  }

  #byMemory({ memoryBytes }: Demand): number {
    return memoryBytes <= this.#memoryBytes ? Infinity : 0;
  }

  #isUncounted(cpus: number): boolean {
    return cpus === 0 || this.#cpus === Infinity;
  }
}
