/**
 * Where ranks of several hosts meet, the launcher plans, so it has to know what this host is before their contributions come: until then what
 * goes up to it waits here.
 *
 *   quiet ── first frame ──► busy ── machineKnown ──► open
 *                             └── nobody looks what the host is, or nobody can say ──► open
 */
import { encodeMachineXml } from '../../control/messages/machine.ts';
import { makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import type { TellableMachine } from '../../control/planner/known-machine.ts';

export class Announcement {
  readonly #machine: () => Promise<TellableMachine | null> | null;
  readonly #send: (frame: Frame) => void;
  #state: 'quiet' | 'busy' | 'open' = 'quiet';
  #found: TellableMachine | null = null;
  #waiting: Frame[] = [];

  /** `machine`: what this host is, once that is known; null: nobody looks. */
  constructor(machine: () => Promise<TellableMachine | null> | null, send: (frame: Frame) => void) {
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
      () => this.#open(), // a notice has said why; ranks lie as if nobody knew the host
    );
    return undefined;
  }

  #announce(found: TellableMachine | null): void {
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
