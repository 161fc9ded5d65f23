/** What is free on the hosts, with the numbers of the slots. Taking something twice or giving back what is free is a defect, and throws. */
import type { HostCapacity, Placement, Share } from '../model/capacity.ts';
import type { Demand } from '../model/spec.ts';
import type { Part } from './gang.ts';
import { HostRoom, useOfShare } from './host-room.ts';
import { pickSlots } from './pick-slots.ts';

interface Host {
  readonly capacity: HostCapacity;
  readonly room: HostRoom;
  /** Ascending. */
  freeSlots: readonly number[];
  /** What tasks have of it. */
  readonly taken: Set<Share>;
}

export class Resources {
  readonly #hosts: readonly Host[];
  readonly #indexes: ReadonlyMap<string, number>;

  constructor(hosts: readonly HostCapacity[]) {
    this.#hosts = hosts.map((capacity) => ({
      capacity,
      room: new HostRoom(capacity),
      freeSlots: capacity.slots,
      taken: new Set(),
    }));
    this.#indexes = new Map(hosts.map(({ name }, index) => [name, index]));
    if (this.#indexes.size < hosts.length) throw new Error('two hosts have the same name');
  }

  get hosts(): readonly HostCapacity[] {
    return this.#hosts.map(({ capacity }) => capacity);
  }

  /** In the order of the hosts. */
  get rooms(): readonly HostRoom[] {
    return this.#hosts.map(({ room }) => room);
  }

  indexOf(name: string): number | undefined {
    return this.#indexes.get(name);
  }

  hasFreeSlot(name: string, slot: number): boolean {
    const index = this.#indexes.get(name);
    return index !== undefined && this.#host(index).freeSlots.includes(slot);
  }

  /** Gives ranks of a demand their slots; takes nothing yet. */
  placementOf(demand: Demand, parts: readonly Part[]): Placement {
    return parts.map(({ host: index, ranks }) => {
      const { capacity, freeSlots } = this.#host(index);
      return {
        host: capacity.name,
        ranks,
        slots: demand.takesSlots ? pickSlots(freeSlots, ranks) : [],
        cpus: ranks * demand.cpusPerRank,
        memoryBytes: demand.memoryBytes,
        exclusive: demand.exclusive,
      };
    });
  }

  /** All of it or, with an error, nothing. The same object gives it back. */
  take(placement: Placement): void {
    const hosts = placement.map((share) => this.#hostFor(share));
    if (new Set(hosts).size < hosts.length) throw new Error('a placement has two shares of one host');
    for (const [index, share] of placement.entries()) {
      const host = hosts[index];
      if (host !== undefined) checkFree(host, share);
    }
    for (const share of placement) {
      const host = this.#hostFor(share);
      host.freeSlots = host.freeSlots.filter((slot) => !share.slots.includes(slot));
      host.room.take(useOfShare(share));
      host.taken.add(share);
    }
  }

  giveBack(placement: Placement): void {
    for (const share of placement)
      if (!this.#hostFor(share).taken.has(share))
        throw new Error(`a share of ${share.host} is given back that nobody has`);
    for (const share of placement) {
      const host = this.#hostFor(share);
      host.freeSlots = [...host.freeSlots, ...share.slots].sort((one, other) => one - other);
      host.room.giveBack(useOfShare(share));
      host.taken.delete(share);
    }
  }

  #host(index: number): Host {
    const host = this.#hosts[index];
    if (host === undefined) throw new RangeError(`there is no host ${index}`);
    return host;
  }

  #hostFor({ host }: Share): Host {
    const index = this.#indexes.get(host);
    if (index === undefined) throw new Error(`no host is named ${host}`);
    return this.#host(index);
  }
}

function checkFree({ capacity, room, freeSlots }: Host, share: Share): void {
  const missing = share.slots.find((slot, index) => !freeSlots.includes(slot) || share.slots.indexOf(slot) !== index);
  if (missing !== undefined) throw new Error(`slot ${missing} of ${capacity.name} is not free`);
  if (!room.hasRoomFor(useOfShare(share)))
    throw new Error(`${capacity.name} has no room for ${share.ranks} more ranks`);
}
