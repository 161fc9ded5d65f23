/** Slots whose GPUs other jobs hold: until a time, they count as taken by a task of this name. */
export class BusySlots {
  readonly #until = new Map<string, number>();

  static nameOf(host: string, slot: number): string {
    return `another job on GPU ${slot} of ${host}`;
  }

  add(name: string, until: number): void {
    this.#until.set(name, until);
  }

  remove(name: string): void {
    this.#until.delete(name);
  }

  /** Names with the ends of their time. */
  get all(): Iterable<readonly [name: string, until: number]> {
    return this.#until;
  }

  /** Null: there is none. */
  firstEnd(): number | null {
    return this.#until.size === 0 ? null : Math.min(...this.#until.values());
  }

  /** Forgets those whose time is over, and returns them. */
  expire(now: number): string[] {
    const over = [...this.#until].flatMap(([name, until]) => (until <= now ? [name] : []));
    for (const name of over) this.#until.delete(name);
    return over;
  }
}
