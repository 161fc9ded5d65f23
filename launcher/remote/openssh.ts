/** The system's ssh. It reads the user's configuration, keys, certificates and known hosts as always; it never asks anything. */
import { spawn } from 'node:child_process';
import { basename } from 'node:path';
import type { HostUnreachableFailure } from '../job/failure.ts';
import type { HostSlots } from '../job/types.ts';
import type { RemoteExit, RemoteProcess, RemoteShell } from './shell.ts';
import { explainSsh, isTransientSsh } from './ssh-complaint.ts';
import { SshSettings } from './ssh-settings.ts';

/**
 * No prompt, no terminal, no forwarding: a command and its streams. The lease on the link finds a silent host sooner than
 * ServerAlive does; that one only ends an ssh whose launcher was killed while the host was cut off.
 */
const fixedOptions = [
  ['BatchMode', 'yes'],
  ['ForwardAgent', 'no'],
  ['ForwardX11', 'no'],
  ['ClearAllForwardings', 'yes'],
  ['PermitLocalCommand', 'no'],
  ['ControlMaster', 'no'],
  ['UpdateHostKeys', 'no'],
  ['RemoteCommand', 'none'],
  ['ServerAliveInterval', '30'],
  ['LogLevel', 'ERROR'],
] as const;

export class OpenSsh implements RemoteShell {
  readonly #command: readonly string[];
  /** Null for a command that is no ssh. */
  readonly #settings: SshSettings | null;

  /** `rsh`: auto and openssh mean ssh as the PATH has it; else a command, called with [-l user] [-p port] -- host command. */
  constructor(rsh: string, dialPath: string) {
    this.#command = rsh === 'auto' || rsh === 'openssh' ? ['ssh'] : rsh.split(/\s+/).filter(Boolean);
    this.#settings = basename(this.#command[0] ?? '') === 'ssh' ? new SshSettings(this.#command, dialPath) : null;
  }

  async start(host: HostSlots, command: string): Promise<RemoteProcess> {
    const [program = 'ssh', ...first] = this.#command;
    const settings = this.#settings === null ? [] : await this.#options(this.#settings, host);
    const words = [...first, ...settings, ...destination(host), command];
    // A session of its own: ^C at the terminal is ours to judge, and ^Z must not stop the link.
    const child = spawn(program, words, { stdio: ['pipe', 'pipe', 'pipe'], detached: true });
    const { promise: exit, resolve } = Promise.withResolvers<RemoteExit>();
    child.on('error', () => resolve({ status: null, signal: null }));
    child.on('close', (status, signal) => resolve({ status, signal }));
    return {
      stdin: child.stdin,
      stdout: child.stdout,
      stderr: child.stderr,
      exit,
      kill: (signal) => void child.kill(signal),
    };
  }

  async #options(known: SshSettings, host: HostSlots): Promise<string[]> {
    const settings = await known.options(destination(host));
    return ['-T', '-x', '-a', ...[...fixedOptions, ...settings].flatMap(([name, value]) => ['-o', `${name}=${value}`])];
  }

  explain(host: HostSlots, stderr: string, exit: RemoteExit): HostUnreachableFailure {
    return explainSsh(host, stderr, exit);
  }

  isTransient(stderr: string): boolean {
    return isTransientSsh(stderr);
  }
}

/** User and port of the hostfile, before the name: what begins with a dash is still a name. */
function destination({ name, user, port }: HostSlots): string[] {
  return [...(user === null ? [] : ['-l', user]), ...(port === null ? [] : ['-p', String(port)]), '--', name];
}
