/** What several hosts report alike while their ranks start is one line. */
import { foldNames } from '../text/fold-names.ts';

/** Of messages; no honest host has so many. */
const MAX_KINDS = 16;

export class StartNotices {
  /** By message. */
  readonly #hosts = new Map<string, Set<string>>();

  add(host: string, message: string): void {
    const hosts = this.#hosts.get(message);
    if (hosts === undefined) this.#hosts.set(message, new Set([host]));
    else hosts.add(host);
  }

  get isFull(): boolean {
    return this.#hosts.size >= MAX_KINDS;
  }

  /** The lines so far. */
  take(): string[] {
    const lines = Array.from(
      this.#hosts,
      ([message, hosts]) => `${foldNames([...hosts].toSorted(byName)).join(',')}: ${message}`,
    );
    this.#hosts.clear();
    return lines;
  }
}

/** h2 before h10. An Intl.Collator would cost each start 7 ms. */
function byName(one: string, other: string): number {
  return one.length - other.length || (one < other ? -1 : 1);
}
