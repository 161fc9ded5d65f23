/** One interface to every way of running a command on another host. */
import type { Link } from '../../control/link/link.ts';
import type { HostUnreachableFailure } from '../job/failure.ts';
import type { HostSlots } from '../job/types.ts';

export interface RemoteExit {
  /** The shell's own status; it says nothing of the remote command's, which speaks for itself on the link. Null: killed. */
  readonly status: number | null;
  /** The end of what the shell, or the remote command, said on stderr. */
  readonly remarks: string;
}

export interface RemoteProcess {
  /** The command's stdin and stdout. */
  readonly link: Link;
  /** Resolves when the process on our side is gone and its streams are read; never rejects. */
  readonly exit: Promise<RemoteExit>;
  kill(): void;
}

export interface RemoteShell {
  /** `command` is a command line for the remote login shell; quote what is not ours. Rejects if nothing could be started. */
  start(host: HostSlots, command: string): Promise<RemoteProcess>;
  /** Why the host could not be reached, from what the shell said on stderr. */
  explain(host: HostSlots, exit: RemoteExit): HostUnreachableFailure;
  /** The far side dropped us unheard, as a busy sshd does; another attempt may succeed. */
  isTransient(exit: RemoteExit): boolean;
}

/** One word of a command line for any POSIX-like shell. */
export function quote(word: string): string {
  return `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
