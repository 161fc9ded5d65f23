/** The topology of an agent's host in one attempt: read before ranks start, found out when the planner asks, and written once they run. */
import type { Placement } from '../../control/messages/link.ts';
import type { DeviceName } from '../../control/plan/types.ts';
import type { Native } from '../engine/native.ts';
import type { OwnMachine } from './bootstrap-service.ts';
import { dumpHostTopology, findOwnMachine, NO_MACHINE, readGiven, type TopologyFiles } from './topology-files.ts';

export class AgentTopology {
  readonly #native: Native;
  readonly #notice: (message: string) => void;
  #machine: OwnMachine = NO_MACHINE;
  #writing: Promise<unknown> | null = null;

  constructor(native: Native, notice: (message: string) => void) {
    this.#native = native;
    this.#notice = notice;
  }

  /** What this host is for ranks on a device; null before `use`. */
  machine(device: DeviceName): ReturnType<OwnMachine> {
    return this.#machine(device);
  }

  /** Settles when the file is written, or cannot be; null: none is being written. Never rejects. */
  get writing(): Promise<unknown> | null {
    return this.#writing;
  }

  /**
   * Reads the files, then calls `start`, which starts the ranks and returns whether it did, and writes the topology while they run. Rejects with
   * a VariableError for a file that cannot be read.
   */
  async use(files: TopologyFiles, placement: Placement, start: () => Promise<boolean>): Promise<void> {
    const given = await readGiven(files);
    if (!(await start())) return;
    this.#machine = findOwnMachine(this.#native, files, given, this.#notice);
    const writing = dumpHostTopology(this.#native, files, given, placement);
    if (files.dump !== null) this.#writing = writing.catch(() => null);
    const message = await writing;
    if (message !== null) this.#notice(message);
  }
}
