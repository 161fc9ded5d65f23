/** Processes that a signal (kill -STOP, ^Z) or a debugger has stopped: the kernel takes calls for them, and nobody answers. */
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { usageError } from '../model/usage-error.ts';

const LOOK_MS = 1000;

/** False for one that has ended. */
function isStopped(pid: number): boolean {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return /^[Tt]$/.test(fields.slice(fields.lastIndexOf(')') + 2).charAt(0)); // the name may contain anything
  } catch {
    return false;
  }
}

/** Throws a FailureError (usage) with that sentence for one that is stopped. */
export function refuseStopped(pid: number, sentence: string): void {
  if (isStopped(pid)) throw usageError(sentence, `kill -CONT ${pid} lets it go on`);
}

/** Sends a signal that one which is stopped sees, too. Throws as process.kill does. */
export function signalAwake(pid: number, signal: NodeJS.Signals): void {
  process.kill(pid, signal);
  if (isStopped(pid)) process.kill(pid, 'SIGCONT');
}

/** Breaks the connection with a process that is stopped before it has answered. */
export function leaveStopped(pid: number, socket: Socket): void {
  const look = setInterval(() => {
    if (isStopped(pid)) socket.destroy(new Error('it is stopped'));
  }, LOOK_MS);
  socket.once('close', () => clearInterval(look));
}
