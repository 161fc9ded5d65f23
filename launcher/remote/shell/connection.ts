/** An agent at work, however it was started, and the one interface through which it is started. */
import type { Frame } from '../../../control/messages/frame.ts';
import type { AgentOrder } from '../../../control/messages/link.ts';
import type { AgentFailure, HostUnreachableFailure } from '../../model/failure.ts';
import type { HostSlots } from '../../model/types.ts';

/** Why a connection is no more. */
export interface ConnectionEnd {
  /** What broke it; null if the agent ended it. */
  readonly problem: string | null;
  /** Reason why the agent sent no frame, from the remote shell's messages; null if it did. */
  readonly failure: HostUnreachableFailure | AgentFailure | null;
}

/** What is reported of a connection while it is made. */
export interface ConnectionProgress {
  /** The host lacks ncclrun and gets a copy of so many bytes, once; frames follow when it is there. */
  staging(bytes: number): void;
  /** Called when another remote shell than usual is used; `message` names it and the reason. */
  remoteShell(message: string): void;
  /** How far it is, in a few words. */
  step(step: string): void;
}

export interface ConnectionHandler extends ConnectionProgress {
  frame(frame: Frame): void;
  /** Called once, after the last frame. */
  closed(end: ConnectionEnd): void;
}

export interface AgentConnection {
  send(frame: Frame): void;
  /** Ends what is left of the connection on this side: in order, or at once where the host is lost. Resolves when no process of it is left here. */
  close(lost: boolean): Promise<void>;
}

/** Starts an agent; never throws, failures come through the handler. The order travels with the start. */
export type StartAgent = (host: HostSlots, order: AgentOrder, handler: ConnectionHandler) => AgentConnection;
