/** Connections to jump hosts: one per path, however many hosts lie behind it; ended with the last that uses it. */
import { Hop } from './hop.ts';
import type { HopKnowledge } from './hop.ts';
import type { HopSettings } from './settings.ts';

/** One user of a shared connection. */
export interface Passage {
  readonly hop: Hop;
  /** Rejects with a ConnectionError. */
  readonly opened: Promise<void>;
  /** Needs it no more; a second call does nothing. */
  leave(): void;
}

interface Shared {
  readonly hop: Hop;
  readonly opened: Promise<void>;
  readonly before: Passage | null;
  users: number;
}

type Know = (settings: HopSettings) => Promise<HopKnowledge>;

export class SharedHops {
  readonly #shared = new Map<string, Shared>();

  /** To the last of these hosts, through the others; null if there are none. */
  enter(hops: readonly HopSettings[], know: Know): Passage | null {
    const settings = hops.at(-1);
    if (settings === undefined) return null;
    const key = JSON.stringify(hops.map(({ user, hostName, port, keyName }) => [user, hostName, port, keyName]));
    let shared = this.#shared.get(key);
    if (shared === undefined || shared.hop.isClosed) {
      const hop = new Hop(settings);
      const before = this.enter(hops.slice(0, -1), know);
      shared = { hop, before, opened: hop.open(know(settings), before), users: 0 };
      this.#shared.set(key, shared);
    }
    return this.#passage(key, shared);
  }

  #passage(key: string, shared: Shared): Passage {
    shared.users += 1;
    let inside = true;
    const leave = () => {
      if (!inside) return;
      inside = false;
      shared.users -= 1;
      if (shared.users > 0) return;
      if (this.#shared.get(key) === shared) this.#shared.delete(key);
      shared.hop.end();
      shared.before?.leave();
    };
    return { hop: shared.hop, opened: shared.opened, leave };
  }
}
