/** The hosts of one attempt: those that its ranks need, and spares, which would take the place of others in another attempt. */
import type { Frame } from '../../control/messages/frame.ts';
import type { StartAgent } from '../remote/shell/connection.ts';
import type { Host } from './host.ts';

export class HostSet {
  #needed: readonly Host[] = [];
  #spares: readonly Host[] = [];
  #connectSpares: () => void = () => undefined;
  #up = 0;

  get needed(): readonly Host[] {
    return this.#needed;
  }

  /** Spares that cannot take a host's place any more, by name. */
  get lostSpares(): ReadonlySet<string> {
    return new Set(this.#spares.filter(({ state }) => state.name === 'lost').map(({ name }) => name));
  }

  get areOver(): boolean {
    return this.#all.every((host) => host.isOver);
  }

  isSpare(host: Host): boolean {
    return this.#spares.includes(host);
  }

  /** `spares` are for connectSpares. `before` is called for each host. */
  connect(
    needed: readonly Host[],
    spares: readonly Host[],
    startAgent: StartAgent,
    before: (host: Host) => void,
  ): void {
    const connectTo = (host: Host): void => {
      before(host);
      host.connect(startAgent);
    };
    this.#needed = needed;
    this.#connectSpares = () => {
      this.#spares = spares;
      spares.forEach(connectTo);
    };
    needed.forEach(connectTo);
  }

  /** They keep no rank from starting. */
  connectSpares(): void {
    this.#connectSpares();
  }

  /** The host has said hello. True: it was the last one that the ranks need. */
  isUp(host: Host): boolean {
    if (this.isSpare(host)) return false;
    this.#up += 1;
    return this.#up === this.#needed.length;
  }

  /** To all that have ranks. */
  send(frame: Frame): void {
    for (const host of this.#needed) if (host.state.name === 'running') host.send(frame);
  }

  /** Nothing counts as silent until `resume`. Resolves when that is so. */
  async suspend(): Promise<void> {
    await Promise.all(this.#all.map((host) => host.suspend()));
  }

  resume(): void {
    for (const host of this.#all) host.resume();
  }

  /** What is left of the attempt on any of them ends. */
  end(): void {
    for (const host of this.#all) host.end();
  }

  /** Resolves when no process of any connection is left on our side. */
  async close(): Promise<void> {
    await Promise.all(this.#all.map((host) => host.close()));
  }

  get #all(): readonly Host[] {
    return [...this.#needed, ...this.#spares];
  }
}
