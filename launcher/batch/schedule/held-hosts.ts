/** Hosts on which no task starts, until a time or, with Infinity, until they are released. */
export class HeldHosts {
  readonly #until = new Map<string, number>();

  hold(host: string, until: number): void {
    this.#until.set(host, until);
  }

  release(host: string): void {
    this.#until.delete(host);
  }

  untilOf(host: string): number | null {
    return this.#until.get(host) ?? null;
  }

  /** Hosts with the ends of their time, the earliest first. */
  byEnd(): (readonly [host: string, until: number])[] {
    return [...this.#until].toSorted(([, one], [, other]) => (one === other ? 0 : one - other));
  }

  /** Releases those whose time is over, and returns them. */
  expire(now: number): string[] {
    const over = this.byEnd().flatMap(([host, until]) => (until <= now ? [host] : []));
    for (const host of over) this.#until.delete(host);
    return over;
  }
}
