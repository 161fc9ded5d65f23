/** Requests of this host's engines: takes each frame apart and hands it to the part of the bootstrap that answers it. */
import { decodeGather, decodeJoin, decodeSplit } from '../../control/messages/bootstrap-codec.ts';
import { NcclResult } from '../../control/messages/bootstrap.ts';
import { isFrameKind } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import { ProtocolError } from '../../control/messages/protocol-error.ts';
import { messageOf } from '../../control/message-of.ts';
import { failsWithCommunicator } from '../../control/rendezvous/rules.ts';
import type { AgentMailbox } from './agent-mailbox.ts';
import type { Communicators } from './communicators.ts';
import type { Departures } from './departures.ts';
import type { Engine, EngineChannel } from './engine.ts';
import type { Engines } from './engines.ts';
import type { PendingGathers } from './pending-gathers.ts';

const DECODE_CONTRIBUTION = {
  [FrameKind.join]: decodeJoin,
  [FrameKind.gather]: decodeGather,
  [FrameKind.split]: decodeSplit,
} as const;

interface EngineRequestsOptions {
  readonly channel: EngineChannel;
  readonly engines: Engines;
  readonly communicators: Communicators;
  readonly pendingGathers: PendingGathers;
  readonly mailbox: AgentMailbox;
  readonly departures: Departures;
  /** Called at an engine's hello; its communicator may need this host's topology. */
  readonly introduced: () => void;
}

export class EngineRequests {
  readonly #options: EngineRequestsOptions;

  constructor(options: EngineRequestsOptions) {
    this.#options = options;
  }

  /** Refuses what it cannot take. */
  receive(connection: number, kind: number, request: number, payload: Uint8Array): void {
    const { channel, engines, introduced } = this.#options;
    try {
      if (kind === FrameKind.engineHello) {
        introduced();
        return engines.introduce(connection, request, payload);
      }
      const engine = engines.get(connection);
      if (engine === undefined) throw new ProtocolError('the first frame of an engine must be its hello');
      return this.#request(engine, kind, request, payload);
    } catch (error) {
      const { internalError, systemError } = NcclResult;
      const result = error instanceof ProtocolError ? internalError : systemError;
      return channel.refuse(connection, request, result, messageOf(error));
    }
  }

  #request(engine: Engine, kind: number, request: number, payload: Uint8Array): void {
    const { engines, mailbox, departures } = this.#options;
    switch (kind) {
      case FrameKind.join:
      case FrameKind.gather:
      case FrameKind.split:
        return this.#contribute(engine, kind, request, payload);
      case FrameKind.post:
        return mailbox.post(engine, request, payload);
      case FrameKind.fetch:
        return mailbox.fetch(engine, request, payload);
      case FrameKind.leave:
        return departures.leave(engine, payload);
      case FrameKind.telemetry:
        if (payload.length > 0) throw new ProtocolError('a request for a telemetry page has no payload');
        return engines.morePages(engine, request);
      default:
        throw new ProtocolError(`${isFrameKind(kind) ? 'a frame' : 'an unknown frame'} of kind ${kind} from an engine`);
    }
  }

  #contribute(engine: Engine, kind: keyof typeof DECODE_CONTRIBUTION, request: number, payload: Uint8Array): void {
    const { channel, communicators, pendingGathers, departures } = this.#options;
    const { rank, ...contribution } = DECODE_CONTRIBUTION[kind](payload);
    const failure = failsWithCommunicator(contribution.key) ? communicators.failureOf(contribution.key) : null;
    const requester = { engine, request, rank };
    if (failure !== null) return channel.refuseAll([requester], failure);
    pendingGathers.add(contribution, requester);
    return departures.failDeserted(contribution.key);
  }
}
