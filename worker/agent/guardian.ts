/** The agent's side of its guardian: the process, and the frames to and from it. */
import { isFrameKind } from '../../control/messages/codec.ts';
import type { Frame } from '../../control/messages/frame.ts';
import { exitOf } from '../../control/messages/payload.ts';
import type { LocalServer, LocalServerEvent, Native } from '../engine/native.ts';
import { describeExit } from './describe-exit.ts';

export interface GuardianHandler {
  frame(frame: Frame): void;
  /** The process is gone and all its frames have been delivered. `how` is a phrase: "was killed by SIGKILL". */
  gone(how: string): void;
}

/** The guardian's connection in the server that serves it alone. */
const CONNECTION = 1;

export class Guardian {
  readonly #native: Native;
  readonly #server: LocalServer;
  readonly #handler: GuardianHandler;
  #gone = false;

  /** The guardian removes `runtimeDirectory` when it ends, even if no order ever came. Throws NativeError if it cannot be started. */
  constructor(native: Native, path: string, runtimeDirectory: string, handler: GuardianHandler) {
    this.#native = native;
    this.#handler = handler;
    this.#server = native.guardianStart(path, runtimeDirectory, (event) => this.#event(event));
  }

  send(frame: Frame): void {
    if (this.#gone) return;
    const { kind, flags, subject, request, payload } = frame;
    this.#native.localServerSend(this.#server, CONNECTION, kind, flags, subject, request, payload, []);
  }

  /** Leaves the guardian alone: it ends the ranks, waits for nobody, and exits. */
  close(): void {
    if (!this.#gone) this.#native.localServerDisconnect(this.#server, CONNECTION);
  }

  /** The last resort against a guardian that does not answer. */
  kill(): void {
    if (!this.#gone) this.#native.guardianKill(this.#server);
  }

  /** The last call, once it is gone. Until then it keeps the event loop, and so this process, running. */
  release(): void {
    this.#native.localServerClose(this.#server);
  }

  #event(event: LocalServerEvent): void {
    switch (event.type) {
      case 'frame': {
        const { kind } = event;
        if (isFrameKind(kind)) this.#handler.frame({ ...event, kind });
        else this.kill();
        return;
      }
      case 'died': {
        this.#gone = true;
        this.#handler.gone(event.waitStatus === null ? 'is gone' : describeExit(exitOf(event.waitStatus)));
        return;
      }
      case 'closed':
        // A clean end comes before its death; who sends what is no frame is no guardian of ours any more.
        if (event.reason !== '') this.kill();
        return;
      case 'connected':
        return;
      default:
        event satisfies never;
    }
  }
}
