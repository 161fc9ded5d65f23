/**
 * Which hosts the next attempt uses. One that was lost, or whose ranks have failed again and again, gives its place to a spare: a host of the
 * allocation on which no rank runs. All other ranks stay where they are, and all keep their numbers.
 */
import type { Failure } from '../model/failure.ts';
import type { HostSlots, JobRequest, RankMap } from '../model/types.ts';

/** So many failures of its ranks set a host aside. */
const MAX_FAILURES = 2;

/** Nothing of the job is on the host any more, or never was. */
const GONE: ReadonlySet<Failure['type']> = new Set(['host-lost', 'host-unreachable', 'agent']);

interface Replacement {
  readonly map: RankMap;
  /** A sentence for each host that was set aside, or should have been. */
  readonly notices: readonly string[];
}

interface AttemptEnd {
  /** What decided it. */
  readonly primary: Failure;
  readonly failures: readonly Failure[];
  /** Spares that cannot be used any more, by name. */
  readonly lostSpares: ReadonlySet<string>;
}

export class HostPool {
  readonly #oversubscribe: boolean;
  #spares: readonly HostSlots[];
  readonly #failures = new Map<string, number>();

  /** `hosts`: the whole allocation. Programs with hosts of their own get no others. */
  constructor({ programs, oversubscribe }: JobRequest, hosts: readonly HostSlots[], map: RankMap) {
    const used = new Set(map.hosts.map(({ name }) => name));
    const anyHost = programs.every(({ hostList }) => hostList === null);
    this.#spares = anyHost ? hosts.filter(({ name }) => !used.has(name)) : [];
    this.#oversubscribe = oversubscribe;
  }

  /** In the order in which they are taken. */
  get spares(): readonly HostSlots[] {
    return this.#spares;
  }

  /** Another attempt may go without the host that failed. */
  replaces(failure: Failure, map: RankMap): boolean {
    return GONE.has(failure.type) && 'host' in failure && this.#spareFor(failure.host, map) !== null;
  }

  /** What the attempt after this one runs on. */
  next({ primary, failures, lostSpares }: AttemptEnd, map: RankMap): Replacement {
    this.#spares = this.#spares.filter(({ name }) => !lostSpares.has(name));
    const gone = failures.flatMap((failure) => (GONE.has(failure.type) && 'host' in failure ? [failure.host] : []));
    const blamed = 'host' in primary && !gone.includes(primary.host) ? this.#count(primary.host) : [];
    return [...new Set([...gone, ...blamed])].reduce<Replacement>(
      (before, host) => this.#replace(before, host, gone.includes(host)),
      { map, notices: [] },
    );
  }

  #count(host: string): readonly string[] {
    const count = (this.#failures.get(host) ?? 0) + 1;
    this.#failures.set(host, count);
    return count >= MAX_FAILURES ? [host] : [];
  }

  #replace({ map, notices: earlier }: Replacement, host: string, isGone: boolean): Replacement {
    const index = map.hosts.findIndex(({ name }) => name === host);
    const spare = this.#spareFor(host, map);
    if (index === -1) return { map, notices: earlier };
    const why = isGone ? '' : `, whose ranks have failed ${this.#failures.get(host)} times,`;
    if (spare === null)
      return {
        map,
        notices: [...earlier, `${host}${why} is used again: no other host of the job has room for its ranks`],
      };
    this.#spares = this.#spares.filter((one) => one !== spare);
    return {
      map: { ...map, hosts: map.hosts.with(index, spare) },
      notices: [...earlier, `${spare.name} takes the place of ${host}${why.slice(0, -1)}`],
    };
  }

  #spareFor(host: string, map: RankMap): HostSlots | null {
    const index = map.hosts.findIndex(({ name }) => name === host);
    const needed = map.ranks.filter((rank) => rank.host === index).length;
    const fits = ({ slots }: HostSlots): boolean => slots === null || slots >= needed || this.#oversubscribe;
    return this.#spares.find(fits) ?? null;
  }
}
