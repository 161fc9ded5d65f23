/** What the agent needs of its bootstrap socket. */
import type { Frame } from '../../control/messages/frame.ts';
import type { AnnouncedMachine } from '../../control/planner/known-machine.ts';
import type { AgentOrder, Placement } from '../../control/messages/link.ts';
import type { Exited } from '../../control/messages/payload.ts';
import type { DeviceName } from '../../control/plan/types.ts';
import type { Native } from '../engine/native.ts';
import type { CommunicatorName, LeftBehind, NicPair } from '../../control/messages/hang.ts';
import type { TelemetryPage } from './telemetry.ts';
import type { OwnTables } from './tuning.ts';

export interface BootstrapService {
  /** A rendezvous frame of the launcher. */
  receive(frame: Frame): void;
  rankSpawned(rank: number, pid: number): void;
  /**
   * The guardian saw the rank's process end; `report` is to tell the launcher. It is called once everything that engines had sent by now has
   * been handled and passed on: the launcher must know by then whether the rank has left what it joined, and which rank is to blame.
   */
  rankEnded(rank: number, exited: Exited, report: () => void): void;
  /** Calls `then` after every report that waits. */
  afterReports(then: () => void): void;
  /** What every engine of this host does, or did last. */
  telemetry(): readonly TelemetryPage[];
  /** The flight recorders of these and of processes that have ended, as memory that may still change. */
  recorders(): readonly Uint8Array[];
  /** Of the connection by which a rank of this host receives from another host's; null if they share a host. */
  nicsBetween(communicator: CommunicatorName, rank: number, peer: number): NicPair | null;
  close(): void;
}

interface BootstrapFacts {
  readonly native: Native;
  readonly order: AgentOrder;
  readonly placement: Placement;
  readonly socketPath: string;
  readonly sendUp: (frame: Frame) => void;
  readonly machine: OwnMachine;
  readonly tables: OwnTables;
  /** The calls of a communicator's ranks differ. */
  readonly onDiffer: (communicator: CommunicatorName, sentence: string) => void;
  /** A rank waits for one that has left. */
  readonly onLeft: (left: LeftBehind) => void;
}

/** What this host is for ranks on a device, once that is known; null: nobody looks. */
export type OwnMachine = (device: DeviceName) => Promise<AnnouncedMachine | null> | null;

/** @throws the native error if the service cannot start */
export type OpenBootstrap = (facts: BootstrapFacts) => BootstrapService;
