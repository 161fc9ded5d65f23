/**
 * Which hosts get no more tasks for a while: one that makes tasks fail at once would else swallow all that wait. A host is bad where tasks of two
 * jobs failed by themselves soon after their start, or that was lost twice. One that was lost is left alone for a moment, so that its tasks run
 * elsewhere if they can.
 */
import type { HostRow } from '../store/rows.ts';

/** A task that fails so soon may have failed because of its host. */
const SOON_MS = 60_000;
const SUSPECTS = 2;
const LOSSES = 2;
const AFTER_LOSS_MS = 60_000;
const FIRST_MS = 15 * 60_000;
const LONGEST_MS = 24 * 60 * 60_000;

interface Suspicion {
  /** Jobs of which a task failed there soon after its start. */
  readonly jobs: Set<number>;
  losses: number;
}

/** The end of an attempt, as far as its hosts are concerned. */
interface Ended {
  readonly job: number;
  readonly hosts: readonly string[];
  /** Hosts that were lost. */
  readonly lost: readonly string[];
  readonly failed: boolean;
  readonly lastedMs: number;
}

export class BadHosts {
  readonly #suspicions = new Map<string, Suspicion>();
  readonly #known: Map<string, HostRow>;

  constructor(known: readonly HostRow[]) {
    this.#known = new Map(known.map((row) => [row.name, row]));
  }

  /** The hosts that are to get nothing for a while because of it. */
  afterEnd({ job, hosts, lost, failed, lastedMs }: Ended, now: number): readonly HostRow[] {
    const bad: HostRow[] = [];
    for (const name of hosts) {
      const suspicion = this.#suspicions.get(name) ?? { jobs: new Set<number>(), losses: 0 };
      this.#suspicions.set(name, suspicion);
      if (lost.includes(name)) suspicion.losses += 1;
      // A task on several hosts says nothing about one of them.
      else if (failed && lastedMs < SOON_MS && hosts.length === 1) suspicion.jobs.add(job);
      else if (!failed) suspicion.jobs.clear();
      if (suspicion.losses >= LOSSES) bad.push(this.#quarantine(name, `it was lost ${suspicion.losses} times`, now));
      else if (lost.includes(name)) bad.push(this.#spare(name, now));
      else if (suspicion.jobs.size >= SUSPECTS)
        bad.push(this.#quarantine(name, `${suspicion.jobs.size} jobs failed there soon after their start`, now));
    }
    return bad;
  }

  /** The user knows better. */
  release(name: string): HostRow | null {
    const known = this.#known.get(name);
    if (known === undefined) return null;
    const row = { ...known, quarantined_until: 0, reason: '' };
    this.#known.set(name, row);
    return row;
  }

  #spare(name: string, now: number): HostRow {
    const { quarantines } = this.#known.get(name) ?? { quarantines: 0 };
    const row = { name, quarantined_until: now + AFTER_LOSS_MS, quarantines, reason: 'it was lost' };
    this.#known.set(name, row);
    return row;
  }

  #quarantine(name: string, reason: string, now: number): HostRow {
    this.#suspicions.delete(name);
    const quarantines = (this.#known.get(name)?.quarantines ?? 0) + 1;
    const until = now + Math.min(LONGEST_MS, FIRST_MS * 2 ** (quarantines - 1));
    const row = { name, quarantined_until: until, quarantines, reason };
    this.#known.set(name, row);
    return row;
  }
}
