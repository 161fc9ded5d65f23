/** The agent's side of its guardian: the process, and the frames to and from it. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { Socket } from 'node:net';
import { StreamLink } from '../../control/link/stream-link.ts';
import type { Frame } from '../../control/messages/frame.ts';

export interface GuardianHandler {
  frame(frame: Frame): void;
  /** The process is gone and all its frames have been delivered. `how` is a phrase: "was killed by SIGKILL". */
  gone(how: string): void;
}

export class Guardian {
  readonly #process: ChildProcess;
  readonly #link: StreamLink | null;
  readonly #handler: GuardianHandler;
  #how: string | null = null;
  #linkClosed = false;
  #reported = false;

  /** The guardian removes `runtimeDirectory` when it ends, even if no order ever came. */
  constructor(path: string, runtimeDirectory: string, handler: GuardianHandler) {
    this.#handler = handler;
    // Its own session: a terminal's ^C and hang-up are ours to judge. No stdin or stdout: a remote agent's are the link.
    const child = spawn(path, [runtimeDirectory], {
      stdio: ['ignore', 'ignore', 'inherit', 'pipe'],
      detached: true,
      cwd: '/',
    });
    this.#process = child;
    child.on('error', (error) => this.#ended(`could not be started (${error.message})`));
    child.on('exit', (code, signal) => {
      this.#ended(signal === null ? `exited with status ${code ?? 'unknown'}` : `was killed by ${signal}`);
    });
    const socket = child.stdio[3];
    this.#link = socket instanceof Socket ? new StreamLink(socket, socket) : null;
    this.#link?.open({
      frame: (frame) => handler.frame(frame),
      closed: () => {
        this.#linkClosed = true;
        this.#report();
      },
    });
  }

  send(frame: Frame): void {
    this.#link?.send(frame);
  }

  /** Leaves the guardian alone: it ends the ranks, waits for nobody, and exits. */
  close(): void {
    this.#link?.close();
  }

  /** The last resort against a guardian that does not answer. */
  kill(): void {
    this.#process.kill('SIGKILL');
  }

  #ended(how: string): void {
    this.#how ??= how;
    this.#report();
  }

  #report(): void {
    if (this.#how === null || this.#reported || (this.#link !== null && !this.#linkClosed)) return;
    this.#reported = true;
    this.#handler.gone(this.#how);
  }
}
