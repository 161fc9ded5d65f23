/** The message channel between launcher and agent. */
import type { Frame } from '../messages/frame.ts';

export interface LinkHandler {
  /** @throws ProtocolError: the other side broke the protocol, and the link ends with that sentence */
  frame(frame: Frame): void;
  /** Called once, after the last frame. `problem` is null for a clean end, else one sentence. */
  closed(problem: string | null): void;
}

/**
 * Frames arrive in the order in which they were sent, each once, never before `open`. What is queued is bounded by the
 * protocol itself: output and stdin travel on credit, everything else is small.
 */
export interface Link {
  open(handler: LinkHandler): void;
  /** After the end, sending does nothing. */
  send(frame: Frame): void;
  /** Hands what was sent to the system now, not only at the end of this turn of the event loop. */
  flush(): void;
  /** Sends what was accepted, then ends; the other side sees a clean end. */
  close(): void;
}
