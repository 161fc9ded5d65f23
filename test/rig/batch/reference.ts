/** What fits on hosts, by trying every set of them: slow, simple, and written apart from what it judges. */
import type { HostCapacity, Placement, Share } from '../../../launcher/batch/model/capacity.ts';
import type { Demand } from '../../../launcher/batch/model/spec.ts';

export interface ReferenceTask {
  readonly placement: Placement;
  /** Infinity: without a time limit. */
  readonly endBy: number;
}

export class ReferenceHosts {
  readonly running = new Map<string, ReferenceTask>();
  /** Host → until when. */
  readonly held = new Map<string, number>();
  readonly #hosts: readonly HostCapacity[];
  readonly #able = new Map<Demand, boolean>();

  constructor(hosts: readonly HostCapacity[]) {
    this.#hosts = hosts;
  }

  /** What is wrong with a placement that begins now; empty: nothing. */
  faultsOf(demand: Demand, placement: Placement, now: number): string[] {
    const faults: string[] = [];
    const sum = placement.reduce((total, { ranks }) => total + ranks, 0);
    if (sum !== demand.ranks) faults.push(`${sum} of ${demand.ranks} ranks`);
    if (demand.nodes !== null && placement.length !== demand.nodes) faults.push(`${placement.length} hosts`);
    for (const share of placement) {
      const { host, ranks, slots, cpus, memoryBytes, exclusive } = share;
      if (ranks > this.#room(demand, host, now)) faults.push(`no room for ${ranks} ranks on ${host}`);
      if (demand.ranksPerNode !== null && ranks !== demand.ranksPerNode) faults.push(`${ranks} ranks on ${host}`);
      if (slots.length !== (demand.takesSlots ? ranks : 0)) faults.push(`slots ${slots.join()} on ${host}`);
      const had = new Set(this.#sharesOf(host, now).flatMap((other) => other.slots));
      const own = this.#hosts.find(({ name }) => name === host)?.slots ?? [];
      if (slots.some((slot) => had.has(slot) || !own.includes(slot))) faults.push(`slots ${slots.join()} of ${host}`);
      if (cpus !== ranks * demand.cpusPerRank || memoryBytes !== demand.memoryBytes) faults.push(`amounts on ${host}`);
      if (exclusive !== demand.exclusive) faults.push(`exclusive on ${host}`);
    }
    return faults;
  }

  /** On how few hosts it fits at a time when the running tasks of then are the running ones that have not reached their limits. */
  fewestHosts(demand: Demand, at: number): number | null {
    const rooms = this.#hosts.map(({ name }) => this.#room(demand, name, at));
    let fewest: number | null = null;
    for (let set = 1; set < 2 ** rooms.length; set++) {
      const chosen = rooms.filter((_, index) => (set & (1 << index)) !== 0);
      if (fits(demand, chosen) && (fewest === null || chosen.length < fewest)) fewest = chosen.length;
    }
    return fewest;
  }

  /** When it fits at the latest, by the time limits. */
  earliest(demand: Demand, now: number): number {
    const ends = [...Array.from(this.running.values(), ({ endBy }) => endBy), ...this.held.values()];
    const times = [now, ...ends.filter((time) => time > now && time !== Infinity)].toSorted((a, b) => a - b);
    return times.find((time) => this.fewestHosts(demand, time) !== null) ?? Infinity;
  }

  /** Whether it fits hosts on which nothing runs. */
  everFits(demand: Demand): boolean {
    const known = this.#able.get(demand) ?? new ReferenceHosts(this.#hosts).fewestHosts(demand, 0) !== null;
    this.#able.set(demand, known);
    return known;
  }

  #sharesOf(host: string, at: number): Share[] {
    const tasks = [...this.running.values()].filter(({ endBy }) => endBy > at);
    return tasks.flatMap(({ placement }) => placement.filter((share) => share.host === host));
  }

  #room(demand: Demand, name: string, at: number): number {
    const host = this.#hosts.find((one) => one.name === name);
    if (host === undefined || (this.held.get(name) ?? -Infinity) > at) return 0;
    if (demand.hosts?.includes(name) === false || demand.exclude.includes(name)) return 0;
    const shares = this.#sharesOf(name, at);
    if (shares.some(({ exclusive }) => exclusive) || (demand.exclusive && shares.length > 0)) return 0;
    const sum = (value: (share: Share) => number): number => shares.reduce((total, share) => total + value(share), 0);
    if (host.memoryBytes !== null && host.memoryBytes - sum((share) => share.memoryBytes) < demand.memoryBytes)
      return 0;
    const rooms = [demand.ranks];
    if (demand.takesSlots) rooms.push(host.slots.length - sum(({ slots }) => slots.length));
    if (host.cpus !== null && demand.cpusPerRank > 0)
      rooms.push(Math.floor((host.cpus - sum(({ cpus }) => cpus)) / demand.cpusPerRank));
    const isUncounted = (slots: boolean, cpus: number): boolean => !slots && (cpus === 0 || host.cpus === null);
    if (isUncounted(demand.takesSlots, demand.cpusPerRank)) {
      const others = sum(({ slots, cpus, ranks }) => (isUncounted(slots.length > 0, cpus) ? ranks : 0));
      rooms.push(Math.max(1, host.slots.length, host.cpus ?? 0) - others);
    }
    return Math.max(0, Math.min(...rooms));
  }
}

/** Whether a demand fits on exactly these hosts. */
function fits({ ranks, nodes, ranksPerNode }: Demand, rooms: readonly number[]): boolean {
  if (nodes !== null && rooms.length !== nodes) return false;
  if (ranksPerNode !== null)
    return rooms.length * ranksPerNode === ranks && rooms.every((room) => room >= ranksPerNode);
  const sum = rooms.reduce((total, room) => total + room, 0);
  return rooms.length <= ranks && rooms.every((room) => room > 0) && sum >= ranks;
}
