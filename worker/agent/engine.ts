/** A process that uses the engine, as its agent knows it. */
import type { EngineHello } from '../../control/messages/bootstrap-codec.ts';
import { encodeRefused } from '../../control/messages/bootstrap-codec.ts';
import type { NcclResult } from '../../control/messages/bootstrap.ts';
import { describeRank } from '../../control/rendezvous/failure.ts';
import type { RendezvousFailure } from '../../control/rendezvous/failure.ts';
import { ALL_RANKS, FrameKind } from '../../control/messages/frame.ts';
import type { LocalServer, Native, NativeHandle } from '../engine/native.ts';

export interface Engine {
  readonly connection: number;
  /** As this host sees it. */
  readonly pid: number;
  readonly hello: EngineHello;
  /** Rank in the job, -1 if it is unknown. */
  readonly jobRank: number;
  /** Its pages (telemetry.ts); they stay readable after its death. */
  readonly telemetry: Uint8Array[];
  /** Its flight recorder (recorder.ts), likewise. */
  readonly recorder: Uint8Array;
  /** Its process is no more, or its connection is closed: nothing can be sent. */
  gone: boolean;
  /** How it went, after its rank's name; null while it is there or its end is not yet understood. */
  goodbye: string | null;
}

/** Whom the job blames for what the engine did. */
export function blamed({ jobRank }: Engine): number {
  return jobRank < 0 ? ALL_RANKS : jobRank;
}

/** How the engine of a rank went: "rank 2 (node1, pid 4711) was killed by SIGKILL" */
export function describeGoodbye(rank: number, hostName: string, engine: Engine): string {
  return `${describeRank(rank, hostName, engine.pid)} ${engine.goodbye ?? 'is gone'}`;
}

/** The sending side of the bootstrap socket. */
export class EngineChannel {
  readonly #native: Native;
  readonly #server: LocalServer;

  constructor(native: Native, server: LocalServer) {
    this.#native = native;
    this.#server = server;
  }

  send(
    connection: number,
    kind: FrameKind,
    request: number,
    payload: Uint8Array,
    handles: readonly NativeHandle[] = [],
  ): void {
    this.#native.localServerSend(this.#server, connection, kind, 0, 0, request, payload, handles);
  }

  refuse(connection: number, request: number, result: NcclResult, sentence: string): void {
    this.send(connection, FrameKind.refused, request, encodeRefused(result, sentence));
  }

  /** Sends a complete table to all that asked for it and are still there. */
  answerAll(requesters: readonly Requester[], table: Uint8Array): void {
    for (const { engine, request } of requesters)
      if (!engine.gone) this.send(engine.connection, FrameKind.table, request, table);
  }

  refuseAll(requesters: readonly Requester[], { result, sentence }: RendezvousFailure): void {
    for (const { engine, request } of requesters)
      if (!engine.gone) this.refuse(engine.connection, request, result, sentence);
  }
}

/** A question of an engine that has no answer yet. */
export interface Requester {
  readonly engine: Engine;
  readonly request: number;
  /** In the communicator. */
  readonly rank: number;
}
