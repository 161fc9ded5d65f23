/** The keys of the job's MPI program on one host: those of its own ranks at once, those of other hosts from the next barrier on. */

/** Maximum of keys and values, so that a rank cannot exhaust the agent's memory. */
const MAX_BYTES = 64 * 1024 * 1024;
const ENTRY_BYTES = 100;

export class KeySpace {
  readonly #values = new Map<string, string>();
  #bytes = 0;

  get(key: string): string | undefined {
    return this.#values.get(key);
  }

  /** False if it is full. */
  put(key: string, value: string): boolean {
    const before = this.#values.get(key);
    const added =
      before === undefined ? key.length + value.length + ENTRY_BYTES : Math.max(0, value.length - before.length);
    if (this.#bytes + added > MAX_BYTES) return false;
    this.#bytes += added;
    this.#values.set(key, value);
    return true;
  }
}
