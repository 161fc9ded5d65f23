/** One interface to every way of running a command on another host. */
import type { Readable, Writable } from 'node:stream';
import type { HostUnreachableFailure } from '../job/failure.ts';
import type { HostSlots } from '../job/types.ts';

export interface RemoteExit {
  /** The shell's own status; it says nothing of the remote command's, which speaks for itself on the link. */
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface RemoteProcess {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Resolves when the process on our side is gone and its streams are read; never rejects. */
  readonly exit: Promise<RemoteExit>;
  kill(signal: NodeJS.Signals): void;
}

export interface RemoteShell {
  /** `command` is a command line for the remote login shell; quote what is not ours. */
  start(host: HostSlots, command: string): Promise<RemoteProcess>;
  /** Why the host could not be reached, from what the shell said on stderr. */
  explain(host: HostSlots, stderr: string, exit: RemoteExit): HostUnreachableFailure;
  /** The far side dropped us unheard, as a busy sshd does; another attempt may succeed. */
  isTransient(stderr: string): boolean;
}

/** One word of a command line for any POSIX-like shell. */
export function quote(word: string): string {
  return `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
