/** MPI programs among a host's ranks. Few jobs have any: what serves them is loaded when a rank asks for it. */
import { FrameKind } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import type { AgentOrder, AgentReport, Placement } from '../../control/messages/link.ts';
import type { Exit } from '../../control/messages/payload.ts';
import type { PmiServer } from './pmi-server.ts';

/**
 * Times after its start at which rank 0's processes are looked at for Open MPI, in milliseconds: a program of Open MPI takes longer than the first to
 * initialise itself, and an interpreter longer to import it. Shorter jobs are never looked at.
 */
const LOOKS_MS: readonly number[] = [50, 1000, 5000, 20_000];

const OUTER_PMI = /^(?:PMI_(?:FD|PORT|ID)$|PMIX_(?!MCA_))/u;

interface MpiProgramsOptions {
  readonly order: Pick<AgentOrder, 'jobId' | 'epoch' | 'hostName'>;
  readonly placement: Placement;
  /** To the guardian. */
  send(frame: Frame): void;
  /** To the launcher. */
  sendUp(frame: Frame): void;
  report(report: AgentReport): void;
  /** Takes the guardian's frames that were deferred. */
  replay(frame: Frame): void;
}

/**
 * Of a launcher that started us: ranks must not take its connection for theirs, which has its descriptor closed, nor all of them themselves for the
 * one process that we are to its PMIx server. PMIX_MCA_*: the user's settings.
 */
export function forgetOuterPmi(): void {
  for (const name of Object.keys(process.env).filter((one) => OUTER_PMI.test(one))) delete process.env[name];
}

export class MpiPrograms {
  readonly #options: MpiProgramsOptions;
  #server: PmiServer | null = null;
  /** Frames of the guardian that wait until the server is loaded. */
  #deferred: Frame[] | null = null;
  #look: NodeJS.Timeout | null = null;
  #isClosed = false;

  constructor(options: MpiProgramsOptions) {
    this.#options = options;
  }

  /** True if a frame of the guardian is replayed later: it is the first of a rank's PMI connection, or follows that. */
  defers(frame: Frame): boolean {
    if (this.#deferred !== null) {
      this.#deferred.push(frame);
      return true;
    }
    if (frame.kind !== FrameKind.pmi || this.#server !== null || this.#isClosed) return false;
    this.#deferred = [frame];
    void this.#load();
    return true;
  }

  /** Bytes of a rank's PMI connection. */
  receive(frame: Frame): void {
    this.#server?.receive(frame);
  }

  /** True if the launcher's frame is for MPI programs. @throws ProtocolError if it is malformed */
  answered(frame: Frame): boolean {
    return this.#server?.answered(frame) ?? false;
  }

  spawned(rank: number, pid: number): void {
    const { placement } = this.#options;
    if (rank === 0 && placement.rankCount > 1 && placement.pmi !== undefined) this.#lookLater(pid, 0);
  }

  /** Before the launcher learns of it. */
  rankEnded(rank: number, exit: Exit): void {
    this.#server?.rankEnded(rank, exit);
    if (rank === 0) this.#stopLooking();
  }

  close(): void {
    this.#isClosed = true;
    this.#stopLooking();
    this.#server?.close();
  }

  async #load(): Promise<void> {
    const { PmiServer } = await import('./pmi-server.ts');
    this.#stopLooking();
    this.#server = new PmiServer(this.#options);
    const deferred = this.#deferred ?? [];
    this.#deferred = null;
    if (this.#isClosed) return;
    for (const frame of deferred) this.#options.replay(frame);
  }

  #lookLater(pid: number, index: number): void {
    const after = LOOKS_MS[index];
    if (after === undefined) return;
    const waited = LOOKS_MS[index - 1] ?? 0;
    this.#look = setTimeout(() => void this.#lookAt(pid, index), after - waited).unref();
  }

  async #lookAt(pid: number, index: number): Promise<void> {
    const { openMpiProgram } = await import('./open-mpi.ts');
    if (this.#look === null) return; // it has ended meanwhile, or uses PMI
    const library = openMpiProgram(pid);
    if (library === null) return this.#lookLater(pid, index + 1);
    const message = `rank 0 is a program of Open MPI (${library}), which finds the other ranks by PMIx alone: each rank is an MPI job of one process. Start it with mpirun --hostfile FILE, or build it against MPICH`;
    return this.#options.report({ type: 'notice', message });
  }

  #stopLooking(): void {
    if (this.#look !== null) clearTimeout(this.#look);
    this.#look = null;
  }
}
