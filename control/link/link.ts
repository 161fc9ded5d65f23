/** The message channel between launcher and agent. */
import type { Frame } from '../messages/frame.ts';

export interface LinkHandler {
  /** @throws ProtocolError if the other side broke the protocol; the link closes with that message */
  frame(frame: Frame): void;
  /** Called once, after the last frame. `problem` is null for a clean end, else one sentence. */
  closed(problem: string | null): void;
}

/**
 * Delivers frames in the order of sending, each once, never before `open`. The protocol bounds the queue: output and stdin
 * travel on credit, all other frames are small.
 */
export interface Link {
  open(handler: LinkHandler): void;
  /** Does nothing after the end. */
  send(frame: Frame): void;
  /** Passes sent frames to the kernel now instead of at the end of the event-loop tick. */
  flush(): void;
  /** Sends the accepted frames, then ends; the other side sees a clean end. */
  close(): void;
}
