/** What the hosts of a job are, as their agents report it: each type of host once. */
import { makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import { decodeMachineXml } from '../../control/messages/machine.ts';
import type { MachineXml } from '../../control/messages/machine.ts';
import { ProtocolError } from '../../control/messages/protocol-error.ts';
import type { HostMachine } from '../../control/planner/input/input.ts';
import { messageOf } from '../../control/message-of.ts';

/** A hash, as text. */
const MAX_KEY_BYTES = 256;
/** Instead of a host: none is left that could answer. */
const NOBODY = -1;
/** Likewise: one has answered. */
const ANSWERED = -2;

interface HostType {
  /** null: not received yet, or of no use. */
  machine: HostMachine | null;
  isKnown: boolean;
  /** The host that was asked for it, or NOBODY or ANSWERED. */
  asked: number;
  /** Hosts of this type that may not go on yet. */
  readonly waiting: Set<number>;
}

interface MachinesOptions {
  /** Loads the planner's reader of machines, which few jobs need. Throws TopologyError, UnplannableError. */
  read(machine: MachineXml): Promise<HostMachine>;
  send(host: number, frame: Frame): void;
  /** A machine that nobody can read: its hosts' ranks lie as if it were not known. */
  unreadable(host: number, reason: string): void;
}

export class Machines {
  readonly #options: MachinesOptions;
  readonly #types = new Map<string, HostType>();
  readonly #typeOf = new Map<number, HostType>();

  constructor(options: MachinesOptions) {
    this.#options = options;
  }

  /** null: the host has not reported what it is. */
  of(host: number): HostMachine | null {
    return this.#typeOf.get(host)?.machine ?? null;
  }

  /** False: the frame is not ours. @throws ProtocolError if it is malformed, or nobody asked for it */
  receive(host: number, { kind, payload }: Frame): boolean {
    if (kind === FrameKind.machineKey) {
      if (this.#typeOf.has(host)) throw new ProtocolError('what it is, a second time');
      if (payload.length > MAX_KEY_BYTES) throw new ProtocolError(`a key of ${payload.length} bytes for what it is`);
      this.#announced(host, Buffer.from(payload).toString('latin1'));
    } else if (kind === FrameKind.machine) {
      const asked = this.#typeOf.get(host);
      if (asked?.asked !== host) throw new ProtocolError('its topology, which nobody asked for');
      asked.asked = ANSWERED;
      void this.#answered(host, asked, decodeMachineXml(payload));
    } else return false;
    return true;
  }

  hostLost(host: number): void {
    for (const kind of this.#types.values()) {
      kind.waiting.delete(host);
      if (kind.asked === host && !kind.isKnown) this.#ask(kind);
    }
  }

  #announced(host: number, key: string): void {
    const known = this.#types.get(key);
    const kind: HostType = known ?? { machine: null, isKnown: false, asked: NOBODY, waiting: new Set() };
    this.#types.set(key, kind);
    this.#typeOf.set(host, kind);
    if (kind.isKnown) return this.#options.send(host, makeFrame(FrameKind.machineKnown));
    kind.waiting.add(host);
    if (kind.asked === NOBODY) this.#ask(kind);
    return undefined;
  }

  #ask(kind: HostType): void {
    const [first] = kind.waiting;
    kind.asked = first ?? NOBODY;
    if (first !== undefined) this.#options.send(first, makeFrame(FrameKind.machineWanted));
  }

  async #answered(host: number, kind: HostType, machine: MachineXml): Promise<void> {
    try {
      kind.machine = await this.#options.read(machine);
    } catch (error) {
      this.#options.unreadable(host, messageOf(error));
    }
    kind.isKnown = true;
    for (const one of kind.waiting) this.#options.send(one, makeFrame(FrameKind.machineKnown));
    kind.waiting.clear();
  }
}
