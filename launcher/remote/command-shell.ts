/** Any command that runs a command line on a host, called as CMD [user@]host command. */
import type { HostSlots } from '../model/types.ts';
import { exitOf } from '../../control/messages/payload.ts';
import { startTool } from '../local/host.ts';
import { loginOf } from './shell/shell.ts';
import type { RemoteExit, RemoteProcess, RemoteShell } from './shell/shell.ts';
import { makeConnectionError } from './shell/connection-error.ts';
import { isTransientSsh } from './ssh-error.ts';
import { messageOf } from '../../control/message-of.ts';

export class CommandShell implements RemoteShell {
  readonly #words: readonly string[];

  /** `words`: the command and its first arguments. */
  constructor(words: readonly string[]) {
    this.#words = words;
  }

  async start(host: HostSlots, command: string): Promise<RemoteProcess> {
    if (host.port !== null) {
      const detail = `${this.#words.join(' ')} cannot be told the port ${host.port}`;
      throw makeConnectionError('other', detail, 'leave the port out, or use --rsh ssh2 or openssh');
    }
    try {
      return runShell([...this.#words, loginOf(host), command]);
    } catch (error) {
      throw makeConnectionError('shell', messageOf(error), 'check the command given to --rsh');
    }
  }

  trial(host: HostSlots): string {
    return [...this.#words, loginOf(host), 'true'].join(' ');
  }

  isTransient({ stderr }: RemoteExit): boolean {
    return isTransientSsh(stderr);
  }
}

/** A command line whose streams are the link; `changes` as startTool's. @throws NativeError if it cannot be started */
export function runShell(words: readonly string[], changes: readonly string[] = []): RemoteProcess {
  const link = startTool(words, changes);
  const exit = link.died.then(({ waitStatus, stderr }) => {
    link.release();
    return { status: waitStatus === null ? null : exitOf(waitStatus).exitCode, stderr };
  });
  return {
    link,
    exit,
    kill: () => link.kill(),
    letGo: (lost) => (lost ? link.killAlone() : link.letGo()),
    stoppedProcess: () => link.stoppedChild,
  };
}
