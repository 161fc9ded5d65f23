/** The agent's side of its guardian: the process, and the frames to and from it. */
import { existsSync } from 'node:fs';
import type { Frame } from '../../control/messages/frame.ts';
import { exitOf } from '../../control/messages/payload.ts';
import { NativeLink } from '../engine/native-link.ts';
import type { Native } from '../engine/native.ts';
import { describeExit } from './describe-exit.ts';
import { removeUnguarded } from './runtime-directory.ts';

const WARDEN_MS = 500;

interface GuardianHandler {
  frame(frame: Frame): void;
  /** The process is gone and all its frames have been delivered. `how` is a phrase: "was killed by SIGKILL". */
  gone(how: string): void;
}

export interface GuardianOptions {
  /** Of the program. */
  readonly path: string;
  /** Removed by the guardian when it ends, even if no order ever came. */
  readonly runtimeDirectory: string;
  /** From its start to the order to spawn, which brings the lease for the rest; 0: none. */
  readonly leaseMs: number;
  /** This process is ended when it is silent for longer than the lease. */
  readonly endsAgent: boolean;
}

export class Guardian {
  readonly #link: NativeLink;

  /** Throws NativeError if it cannot be started. */
  constructor(
    native: Native,
    { path, runtimeDirectory, leaseMs, endsAgent }: GuardianOptions,
    handler: GuardianHandler,
  ) {
    const words = [path, runtimeDirectory, String(leaseMs), endsAgent ? 'agent' : 'launcher'];
    this.#link = new NativeLink(native, (onEvent) => native.childStart(words, onEvent));
    this.#link.open({
      frame: (frame) => handler.frame(frame),
      closed: (problem) => this.#closed(problem),
    });
    void this.#link.died.then(({ waitStatus }) =>
      handler.gone(waitStatus === null ? 'is gone' : describeExit(exitOf(waitStatus))),
    );
  }

  /** A clean end comes before the death of the process. Its warden, which somebody may have stopped, has a moment to end what is left. */
  #closed(problem: string | null): void {
    const dies = setTimeout(() => this.#link.kill(), problem === null ? WARDEN_MS : 0);
    void this.#link.died.then(() => clearTimeout(dies));
  }

  send(frame: Frame): void {
    this.#link.send(frame);
  }

  /** Leaves the guardian alone: it ends the ranks, waits for nobody, and exits. */
  close(): void {
    this.#link.close();
  }

  /** The last resort against a guardian that does not answer. */
  kill(): void {
    this.#link.kill();
  }

  /** The last call, once it is gone. Until then it keeps the event loop, and so this process, running. */
  release(): void {
    this.#link.release();
  }
}

/** Throws NativeError if it cannot be started, and then removes the directory, where there is at most the agent's own socket. */
export function startGuardian(
  native: Native,
  options: GuardianOptions,
  socketPath: string,
  handler: GuardianHandler,
): Guardian {
  try {
    return new Guardian(native, options, handler);
  } catch (error) {
    removeUnguarded(options.runtimeDirectory, socketPath);
    throw error;
  }
}

/** Where guardian and warden are gone without having removed the directory: another guardian, which has no ranks, does nothing else. */
export async function removeByGuardian(native: Native, options: GuardianOptions): Promise<void> {
  if (!existsSync(options.runtimeDirectory)) return;
  const { promise: gone, resolve } = Promise.withResolvers<void>();
  try {
    const remover = new Guardian(native, options, { frame: () => undefined, gone: () => resolve() });
    remover.close();
    await gone;
    remover.release();
  } catch {
    // No process can be started: the directory stays, and a later job of the user removes it.
  }
}
