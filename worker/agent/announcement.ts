/**
 * The launcher plans communicators across hosts, so it needs this host's topology before the ranks' contributions. Until the launcher has
 * it, frames to the launcher wait here.
 *
 *   quiet ── first frame ──► busy ── machineKnown ──► open
 *                             └── no topology wanted, or detection failed ──► open
 */
import { encodeMachineXml } from '../../control/messages/machine.ts';
import { makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import type { AnnouncedMachine } from '../../control/planner/known-machine.ts';

export class Announcement {
  readonly #machine: () => Promise<AnnouncedMachine | null> | null;
  readonly #send: (frame: Frame) => void;
  #state: 'quiet' | 'busy' | 'open' = 'quiet';
  #found: AnnouncedMachine | null = null;
  #waiting: Frame[] = [];

  /** `machine` resolves to the host's topology; null if the job needs none. */
  constructor(machine: () => Promise<AnnouncedMachine | null> | null, send: (frame: Frame) => void) {
    this.#machine = machine;
    this.#send = send;
  }

  send(frame: Frame): void {
    if (this.#state === 'quiet') this.#begin();
    if (this.#state === 'open') this.#send(frame);
    else this.#waiting.push(frame);
  }

  /** False: the frame is not ours. */
  receive({ kind }: Frame): boolean {
    if (kind === FrameKind.machineKnown) this.#open();
    else if (kind !== FrameKind.machineWanted) return false;
    else if (this.#found !== null)
      this.#send(makeFrame(FrameKind.machine, { payload: encodeMachineXml(this.#found.wire) }));
    return true;
  }

  #begin(): void {
    const machine = this.#machine();
    this.#state = 'busy';
    if (machine === null) return this.#open();
    machine.then(
      (found) => this.#announce(found),
      () => this.#open(), // A notice has reported the reason; the planner assumes an unknown host.
    );
    return undefined;
  }

  #announce(found: AnnouncedMachine | null): void {
    this.#found = found;
    if (found === null) return this.#open();
    return this.#send(makeFrame(FrameKind.machineKey, { payload: Buffer.from(found.key) }));
  }

  #open(): void {
    this.#state = 'open';
    for (const frame of this.#waiting) this.#send(frame);
    this.#waiting = [];
  }
}
