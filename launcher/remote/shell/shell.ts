/** One interface to every remote shell, which runs a command on another host. */
import type { Link } from '../../../control/link/link.ts';
import type { AgentFailure } from '../../model/failure.ts';
import type { HostSlots } from '../../model/types.ts';
import type { ConnectionProgress } from './connection.ts';
import type { Limiter } from './limiter.ts';
import type { ConnectionProblem } from './connection-error.ts';

export interface RemoteExit {
  /** Exit status of the shell itself, not of the remote command, which reports on the link. Null if killed. */
  readonly status: number | null;
  /** Last part of the stderr of the shell and the remote command. */
  readonly stderr: string;
  /** Reason why the command never ran, if the shell knows it; otherwise `stderr` has it. */
  readonly problem?: ConnectionProblem;
  /** Why the host has no agent to start, where the shell tried to bring it one. */
  readonly failure?: AgentFailure;
}

export interface RemoteProcess {
  /** The command's stdin and stdout. */
  readonly link: Link;
  /** Resolves when the process on our side is gone and its streams are read; never rejects. */
  readonly exit: Promise<RemoteExit>;
  /** Nothing of it goes on, as far as it is on this side. */
  kill(): void;
  /**
   * Ends the process on our side alone: whoever is at its other end leaves by itself, also where that is on this machine. In order, so that
   * the host learns of it, which takes a moment; at once where the host is lost.
   */
  letGo(lost: boolean): void;
  /** The number of the process on our side if a signal has stopped it, else null; left out where there is none. */
  stoppedProcess?(): number | null;
  /** Once we are in, the host's login shell has so long to run the command. Left out where the shell does not report when we are. */
  readonly loginMs?: number;
  /** Another host's agent keeps the lease with the one at the other end, and reports its silence. */
  readonly isWatched?: boolean;
}

/** A step: we are in, and the command runs. */
export const AGENT_START = 'agent start';

export interface RemoteShell {
  /**
   * `command` is a command line for the remote login shell; quote what is not ours. Soon resolves, at latest when the connection begins
   * to be made, so that it can be ended from then on. Rejects if nothing could be started: with a ConnectionError where the shell knows why.
   * The shell reports to `progress` what it knows.
   */
  start(host: HostSlots, command: string, making: ConnectionProgress): Promise<RemoteProcess>;
  /** Waits for a slot among the connections being made; resolves to the function that frees it. Without it: a slot of `connecting`. */
  admit?(host: HostSlots, connecting: Limiter): Promise<() => void>;
  /** What to type to connect by hand in the same manner; `verbose`: with more output, where the shell has that. */
  trial(host: HostSlots, verbose: boolean): string;
  /** False where no login comes before the command, so that every status is the command's. Left out: true. */
  readonly hasLogin?: false;
  /** Whether that status may be the shell's own, of a connection that failed; else it comes from the host. Left out: it may. */
  mayFailWith?(status: number): boolean;
  /** The far side dropped us unheard, as a busy sshd does; another attempt may succeed. */
  isTransient(exit: RemoteExit): boolean;
}

/** One that is a program which any host has, so that agents can start agents. */
export interface PortableShell extends RemoteShell {
  /** That program and its arguments, for any host to run. */
  commandLine(host: HostSlots, command: string): readonly string[];
}

/** One word of a command line for any POSIX-like shell. */
export function quote(word: string): string {
  return `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

/** `word` as it is, or quoted for a shell. */
export function quotedIfNeeded(word: string): string {
  return /^[\w.@:/+-]+$/.test(word) ? word : quote(word);
}

/** What ssh is told. */
export function destinationOf({ name, target, user, port }: HostSlots): {
  name: string;
  user: string | null;
  port: number | null;
} {
  return { name: target ?? name, user, port };
}

/** [user@]host */
export function loginOf(host: HostSlots): string {
  const { name, user } = destinationOf(host);
  return user === null ? name : `${user}@${name}`;
}

/** What leads ssh and ssh-copy-id to a host: [-p PORT] [user@]host */
export function sshDestination(host: HostSlots): string {
  const login = quotedIfNeeded(loginOf(host));
  return host.port === null ? login : `-p ${host.port} ${login}`;
}

/** Of ssh itself, for whatever is wrong with the connection. */
export const SSH_FAILED = 255;

/** `ssh`: its path and first arguments. */
export function sshTrial(ssh: readonly string[], host: HostSlots, verbose: boolean): string {
  return [...ssh, ...(verbose ? ['-v'] : []), sshDestination(host), 'true'].join(' ');
}
